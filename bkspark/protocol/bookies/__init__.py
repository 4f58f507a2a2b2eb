"""Which bookies are chosen, and which are avoided for now: hanging ones, and nearly full disks."""
