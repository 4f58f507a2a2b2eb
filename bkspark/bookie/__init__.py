"""Where copies are kept: one small contract, several kinds of storage.

``contract`` says what a bookie must do, ``posix`` and ``memory`` do it, ``uri`` finds the right one
for an address. Nothing outside this folder knows which kind it has.
"""
