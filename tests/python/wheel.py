"""The package as users get it: built and installed into a clean virtual environment, where its tests run.

    wheel.py SOURCE [BUILD]

BUILD: a folder to build in, instead of SOURCE/build/wheel. Without CUDA, which takes long. Ends with 77 where pip cannot get what it needs.
"""

import pathlib
import subprocess
import sys
import tempfile
import venv


def run(*command, **options):
    return subprocess.run([str(word) for word in command], text=True, **options)


def main():
    source = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = pathlib.Path(folder) / "bin" / "python"
        # Whether there is a registry to install from at all is no matter of this project.
        asked = run(python, "-m", "pip", "install", "-q", "numpy", "pytest", "scikit-build-core>=0.10", "nanobind>=2.2",
                    capture_output=True)
        if asked.returncode != 0:
            print("skipped: pip cannot install:", asked.stderr.strip().splitlines()[-1:])
            return 77
        settings = ["--config-settings=cmake.define.TIDE_CUDA=OFF"]
        if len(sys.argv) > 2:
            settings.append(f"--config-settings=build-dir={sys.argv[2]}")
        if run(python, "-m", "pip", "install", "-q", *settings, source).returncode != 0:
            return 1
        run(python, "-m", "pip", "uninstall", "-q", "-y", "scikit-build-core", "nanobind", check=True)
        where = run(python, "-c", "import tidepool; print(tidepool.__file__)", capture_output=True, check=True, cwd=folder)
        if folder not in where.stdout:
            print("what is imported is not what was installed:", where.stdout)
            return 1
        tests = source / "tests" / "python"
        return run(python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", tests, f"--ignore={tests / 'torch'}",
                   cwd=folder).returncode


if __name__ == "__main__":
    sys.exit(main())
