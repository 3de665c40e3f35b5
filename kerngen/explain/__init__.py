"""The pages of `kerngen explain`: one for each diagnostic's code.

The pages are the Markdown files in `pages`, one for each code.  Nothing here knows the
compiler: tests hold the pages to it, and write what it prints into them.
"""
