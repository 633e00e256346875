"""axe-core, a check of accessibility, from the npm registry: it is not part of the repository."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

VERSION = "4.10.2"
MISSING = f"needs axe-core: set AXE to the path of axe.min.js, or have npm fetch axe-core@{VERSION}"


def axe_script(folder):
    """The text of axe.min.js, or None if it cannot be had: by AXE, else fetched into a folder."""
    given = os.environ.get("AXE")
    if given:
        return Path(given).read_text(encoding="utf-8")
    npm = shutil.which("npm")
    if npm is None:
        return None
    command = [npm, "pack", f"axe-core@{VERSION}", "--silent"]
    try:
        subprocess.run(command, cwd=folder, check=True, timeout=60, capture_output=True)
    except (subprocess.SubprocessError, OSError):
        return None
    (archive,) = Path(folder).glob("axe-core-*.tgz")
    with tarfile.open(archive) as files:
        return files.extractfile("package/axe.min.js").read().decode()
