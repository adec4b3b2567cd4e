"""Check the types of the scripts of the web pages: `python -m scripts.pages.check_types`.

The scripts are ES modules with types in comments (JSDoc), which browsers run as they are. The TypeScript compiler reads
them and writes nothing. It exits with 1 where there is an error.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.pages.vendored_files import ASSETS, vendored_files
from tests.world.pages import page_tools
from tests.world.sdk.node_runner import NODE

OPTIONS = {
    **dict.fromkeys(("allowJs", "checkJs", "strict", "noEmit", "skipLibCheck"), True),
    **dict.fromkeys(("noUncheckedIndexedAccess", "noImplicitReturns", "noUnusedLocals", "noUnusedParameters"), True),
    **dict.fromkeys(("noFallthroughCasesInSwitch", "noPropertyAccessFromIndexSignature"), True),
    "target": "es2023",
    "lib": ["es2023", "dom", "dom.iterable", "dom.asynciterable"],
    "module": "esnext",
    "moduleResolution": "bundler",
    "types": [],
}
CHECKED_SCRIPTS = ("assets/playground/*.js", *(f"assets/{name}.js" for name in ("charts", "console", "live", "views")))


def type_errors(assets: Path = ASSETS) -> str:
    """Return the errors of the modules of the playground and of their imports, a line each; "" for none."""
    modules = page_tools.installed()
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "assets"
        shutil.copytree(assets, copied)
        for file in vendored_files():
            if file.types:  # beside the script, where the compiler looks for them
                target = (copied / "vendor" / file.name).with_suffix(".d.ts")
                shutil.copyfile(modules / file.package / file.types, target)
        settings = {"compilerOptions": OPTIONS, "include": CHECKED_SCRIPTS}
        (Path(folder) / "tsconfig.json").write_text(json.dumps(settings))
        compiler = [str(NODE), str(modules / "typescript" / "bin" / "tsc"), "--project", folder]
        return subprocess.run(compiler, cwd=folder, capture_output=True, check=False, text=True).stdout


if __name__ == "__main__":
    if errors := type_errors():
        sys.exit(errors)
