# Shell functions that set a fresh checkout up; source it from the repository's root.
#
# All are quick when there is nothing to do.

# For --help anywhere in the arguments: print the comment at the top of the script, and end.
help_if_asked() {
    case " $* " in
    *" --help "* | *" -h "*)
        sed -n '2,${/^#/!q; s/^# \{0,1\}//p;}' "tools/${0##*/}"
        exit
        ;;
    esac
}

# Nobody is there to be asked: what would wait for an answer fails.
exec </dev/null

# A test starts Python some hundred times: without bytecode each start compiles anew what
# it imports, and the tests take a quarter longer.
unset PYTHONDONTWRITEBYTECODE

VENV=.venv
DRIVER=mesa-vulkan-drivers

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "error: $*"
    exit 1
}

# The first Python that is new enough, by name.
find_python() {
    local python
    for python in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
        if [ -n "$python" ] && "$python" -c \
            'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    fail "No Python 3.11 or newer was found; set PYTHON to one."
}

# Whether packages of the distribution can be installed without asking anybody.
may_install() {
    command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# apt-get as a script needs it: it asks nothing, tries again, and waits five minutes for
# another that holds the lock, as on machines that have just started.
apt_get() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
        -o Acquire::Retries=3 -o Acquire::http::Timeout=60 "$@"
}

install_package() {
    say "Installing $* from the distribution ..."
    apt_get update >&2 || say "Not all lists of packages could be updated."
    apt_get install -y --no-install-recommends "$@" >/dev/null
}

# A virtual environment in $VENV, on Debian also where python3-venv is missing.
make_venv() {
    local python
    python=$(find_python)
    [ -x "$VENV/bin/python" ] && "$VENV/bin/python" -m pip --version >/dev/null 2>&1 &&
        return
    say "Making a virtual environment in $VENV ..."
    "$python" -m venv "$VENV" >/dev/null 2>&1 && return
    may_install || fail "'$python -m venv' failed; on Debian and Ubuntu: apt-get install" \
        "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    install_package "$("$python" -c \
        'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    "$python" -m venv "$VENV"
}

# Both distributions of the repository, kerngen with the given extras, editable; again only
# when pyproject.toml changed.
# Other arguments go to pip.
install_project() {
    local extras=$1 stamp
    shift
    stamp="$VENV/.kerngen-$extras"
    make_venv
    cmp -s pyproject.toml "$stamp" && return
    say "Installing kerngen[$extras] ..."
    # Python compiles what it imports; of PyTorch and its like that is little.
    "$VENV/bin/python" -m pip install -qq --disable-pip-version-check --no-compile \
        -e ".[$extras]" -e ./generated "$@" >&2
    cp pyproject.toml "$stamp"
}

# PyTorch: a build for CPUs where one is found, as PyPI's brings gigabytes of CUDA.
install_torch() {
    local builds=https://download.pytorch.org/whl/cpu/
    make_venv
    if "$VENV/bin/python" -c \
        "import urllib.request as r; r.urlopen('$builds', timeout=10)" 2>/dev/null; then
        install_project torch --extra-index-url "$builds"
    else
        install_project torch
    fi
}

# The program of a name, which a package of the distribution may have to bring.
need_program() {
    command -v "$1" >/dev/null && return
    may_install || fail "There is no $1: install it (Debian's package is $2)."
    install_package "$2"
}

# What the npm package needs, again only when that changed; and the package, compiled.
install_web() {
    local lock=web/package-lock.json stamp=web/node_modules/.kerngen-lock
    need_program node nodejs
    need_program npm npm
    if ! cmp -s "$lock" "$stamp"; then
        say "Installing what web/ needs ..."
        npm --prefix web ci --no-audit --no-fund --ignore-scripts --loglevel=error >&2
        cp "$lock" "$stamp"
    fi
    npm --prefix web run --silent build >&2
}

# Vulkan and EGL complain about a missing run-time folder, on every start.
quiet_drivers() {
    if [ ! -d "${XDG_RUNTIME_DIR:-}" ]; then
        XDG_RUNTIME_DIR=$(mktemp -d)
        export XDG_RUNTIME_DIR
        trap 'rm -rf "$XDG_RUNTIME_DIR"' EXIT
    fi
}

# Whether there is an adapter that is not NumPy: any, or one of the kind given.  llvmpipe by
# OpenGL alone, as browsers bring it, is none: tests crash there.
has_adapter() {
    "$VENV/bin/python" - "$@" <<'PYTHON' >/dev/null 2>&1
import sys
import kerngen.runtime as gpu

kind = sys.argv[1] if len(sys.argv) > 1 else None
ctx = gpu.open(adapter=kind)
sys.exit(
    ctx.kind == "reference" or ctx.device.adapter.info["backend_type"] == "OpenGL"
)
PYTHON
}

# A Vulkan adapter: the machine's own, else a software one; `software` wants just that.
need_adapter() {
    quiet_drivers
    if [ $# = 0 ] && [ "${KERNGEN_ADAPTER:-}" = reference ]; then
        return
    fi
    has_adapter "$@" && return
    if may_install; then
        install_package "$DRIVER"
        has_adapter "$@" && return
        fail "Even with $DRIVER installed there is no adapter."
    fi
    say "There is no ${1:-GPU} adapter, and this user may not install one."
    say "On Debian and Ubuntu:  sudo apt-get install $DRIVER"
    say "On Fedora:             sudo dnf install $DRIVER"
    say "On Arch:               sudo pacman -S vulkan-swrast"
    [ $# != 0 ] || say "Or run without one, by NumPy:  KERNGEN_ADAPTER=reference $0"
    fail "No adapter."
}
