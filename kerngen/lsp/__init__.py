"""The language server for `.kern` files, on pygls.

`files` has open buffers and what is on the disk, `workspace` the checks of open files.
Each feature is a module that takes a checked file and an offset; `server` connects them.
"""
