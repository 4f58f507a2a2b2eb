"""Which bookies are chosen, and which not for now: they hang, or their disks are nearly full."""
