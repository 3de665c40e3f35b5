"""The language server for `.kern` files, on pygls.

`files` reads open buffers and files on the disk, `workspace` checks open files.  Each
feature is a module that takes a checked file and an offset; `server` connects them.
"""
