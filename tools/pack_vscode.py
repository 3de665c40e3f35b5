"""Pack the extension for VS Code as a .vsix, a zip; or write the grammar that it has.

python tools/pack_vscode.py [--grammar | --check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from kerngen.syntax.textmate import grammar

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "editors" / "vscode"
GRAMMAR = FOLDER / "syntaxes" / "kern.tmLanguage.json"
FILES = (
    "package.json",
    "README.md",
    "language-configuration.json",
    "syntaxes/kern.tmLanguage.json",
    "dist/extension.js",
)

TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension=".json" ContentType="application/json"/>
<Default Extension=".vsixmanifest" ContentType="text/xml"/>
<Default Extension=".md" ContentType="text/markdown"/>
<Default Extension=".txt" ContentType="text/plain"/>
<Default Extension=".js" ContentType="application/javascript"/>
</Types>
"""

MANIFEST = """<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0"
    xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
<Metadata>
<Identity Language="en-US" Id={name} Version={version} Publisher={publisher}/>
<DisplayName>{display}</DisplayName>
<Description xml:space="preserve">{description}</Description>
<Categories>Programming Languages,Formatters</Categories>
<Properties>
<Property Id="Microsoft.VisualStudio.Code.Engine" Value={engine}/>
</Properties>
</Metadata>
<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
<Dependencies/>
<Assets>
<Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json"/>
<Asset Type="Microsoft.VisualStudio.Services.Content.Details"
    Path="extension/README.md"/>
</Assets>
</PackageManifest>
"""


def grammar_text() -> str:
    """Return the text of the grammar."""
    return json.dumps(grammar(), indent=2, ensure_ascii=False) + "\n"


def manifest(package: dict[str, Any]) -> str:
    """Return what the marketplace and VS Code read first."""
    quoted = {key: quoteattr(package[key]) for key in ("name", "version", "publisher")}
    return MANIFEST.format(
        **quoted,
        display=package["displayName"],
        description=package["description"],
        engine=quoteattr(package["engines"]["vscode"]),
    )


def pack(out: Path) -> None:
    """Write the extension; of the same files it is the same bytes."""
    package = json.loads((FOLDER / "package.json").read_text("utf-8"))
    files = {f"extension/{file}": (FOLDER / file).read_bytes() for file in FILES}
    files["extension/LICENSE.txt"] = (ROOT / "LICENSE").read_bytes()
    files["extension.vsixmanifest"] = manifest(package).encode()
    files["[Content_Types].xml"] = TYPES.encode()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            archive.writestr(ZipInfo(name), data, ZIP_DEFLATED)


def main() -> int:
    """Do what the argument asks for."""
    match sys.argv[1:]:
        case ["--check"]:
            if GRAMMAR.read_text("utf-8") != grammar_text():
                print(
                    f"{GRAMMAR.relative_to(ROOT)} is not current: tools/vscode --grammar"
                )
                return 1
        case ["--grammar"]:
            GRAMMAR.write_text(grammar_text(), encoding="utf-8")
        case _:
            out = FOLDER / "kerngen.vsix"
            pack(out)
            print(f"{out.relative_to(ROOT)}: {out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
