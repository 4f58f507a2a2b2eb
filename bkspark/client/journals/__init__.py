"""Looking into journals, however long they are: from their ends, by pages, all of one bookie's."""
