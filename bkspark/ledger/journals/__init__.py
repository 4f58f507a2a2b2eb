"""Looking into journals, however long they are; ``journal_reader`` alone walks through them."""
