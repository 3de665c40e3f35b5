"""Write the pages anew: `python -m tests.docs.reference`."""

from tests.docs.reference import PAGES

for file, page in PAGES.items():
    file.write_text(page(), encoding="utf-8", newline="\n")
