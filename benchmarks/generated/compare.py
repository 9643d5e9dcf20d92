"""How long generators take for one package: noctule-gen beside rosidl (Debian's python3-rosidl) and idlc (cyclonedds-tools).

Arguments: noctule-gen, and the folder of a package of .msg. Debian's python3-rosidl, python3-empy, rosidl-tools, rosidl-generator-c-cpp and librcutils-dev are needed, and
its Python (/usr/bin/python3). Of rosidl are measured .msg -> .idl, and the generators of C and C++, which each parse the .idl anew; type support, which ROS 2
generates besides, is not.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAM, PACKAGE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).absolute()
NAME = PACKAGE.name
ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = sorted(PACKAGE.glob("msg/*.msg"))
print(f"{NAME}: {len(FILES)} types; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def timed(what, work):
    start, cpu = time.perf_counter(), os.times()
    work()
    now = os.times()
    spent = sum(now[:4]) - sum(cpu[:4])
    print(f"{what}: {time.perf_counter() - start:.2f} s wall, {spent:.2f} s of processors")


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{words[0]} failed: {done.stderr}")
    return done.stderr


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    idl = folder / "idl" / NAME / "msg"
    (folder / NAME).symlink_to(PACKAGE)

    def ours(languages):
        text = f'[project]\nname = "sets"\nsearch = ["."]\ntypes = ["{NAME}/*"]\nlanguages = {languages}\n'
        (folder / "topics.toml").write_text(text)
        return lambda: print(run(PROGRAM, folder / "topics.toml", "--out", folder / "out").strip().splitlines()[-1].split(" written to")[0] + " written")

    timed("noctule-gen, C", ours('["c"]'))
    every = '["rust", "c", "cpp", "python", "simulink"]'
    timed("noctule-gen, Rust, C, C++, Python, Simulink, catalogue", ours(every))
    timed("noctule-gen again, nothing changed", ours(every))

    out, include = folder / "out", [f"-I{ROOT / 'c'}", f"-I{ROOT / 'c/include'}"]
    timed("gcc -O1 of the C", lambda: run("gcc", "-std=c99", "-O1", "-c", *include, out / "c" / f"{NAME}.c", "-o", folder / "c.o"))
    (folder / "one.cpp").write_text(f'#include "{NAME}.hpp"\n')
    timed("g++ -fsyntax-only of the package's header", lambda: run("g++", "-std=c++17", "-fsyntax-only", *include, f"-I{out / 'cpp'}", folder / "one.cpp"))
    ten = folder / "ten_msgs" / "msg"
    ten.mkdir(parents=True)
    kinds = ["uint64 stamp", "float32 x", "float32 y", "float32 z", "uint8 mode", "bool is_armed", "int16 left", "int16 right", "float64 height", "uint32 count"]
    (ten / "Ten.msg").write_text("\n".join(kinds) + "\n")
    (folder / "topics.toml").write_text('[project]\nname = "ten"\nsearch = ["."]\ntypes = ["ten_msgs/*"]\nlanguages = ["c", "cpp"]\n')
    run(PROGRAM, folder / "topics.toml", "--out", folder / "ten")
    (folder / "one.cpp").write_text('#include "ten_msgs.hpp"\n')
    timed("g++ -fsyntax-only of one type of ten fields", lambda: run("g++", "-std=c++17", "-fsyntax-only", *include, f"-I{folder / 'ten/cpp'}", folder / "one.cpp"))
    if shutil.which("arm-none-eabi-gcc"):
        # A second type shows what each further one takes, and what all share.
        (ten / "Other.msg").write_text((ten / "Ten.msg").read_text())
        run(PROGRAM, folder / "topics.toml", "--out", folder / "two")
        (ten / "Other.msg").unlink()
        words = ["-std=c99", "-mcpu=cortex-m3", "-mthumb", "-Os", "-ffunction-sections", "-c", *include]
        run("arm-none-eabi-gcc", *words, folder / "two/c/ten_msgs.c", "-o", folder / "ten.o")
        symbols = subprocess.run(["arm-none-eabi-nm", "--size-sort", "-S", folder / "ten.o"], check=True, capture_output=True, text=True)
        sizes = {line.split()[3]: int(line.split()[1], 16) for line in symbols.stdout.splitlines()}
        own = {name: size for name, size in sizes.items() if name.startswith("ten_msgs_Ten_")}
        shared = {name: size for name, size in sizes.items() if name.startswith("noctule_")}
        print(f"Cortex-M3 -Os, a type of ten fields: {sum(own.values())} B: {own}; once for all types {sum(shared.values())} B: {shared}")

    from rosidl_adapter.msg import convert_msg_to_idl
    from rosidl_parser.definition import IdlLocator
    from rosidl_parser.parser import parse_idl_file

    def adapt():
        for path in FILES:
            convert_msg_to_idl(PACKAGE, NAME, path.relative_to(PACKAGE), idl)

    def parse():
        for path in FILES:
            parse_idl_file(IdlLocator(str(folder / "idl"), f"{NAME}/msg/{path.stem}.idl"))

    def idlc():
        failed = 0
        for path in FILES:
            words = ["idlc", "-l", "c", "-I", folder / "idl", "-b", folder / "idl", "-o", folder / "c", idl / f"{path.stem}.idl"]
            failed += subprocess.run([str(word) for word in words], capture_output=True).returncode != 0
        print(f"idlc refuses {failed} of {len(FILES)} files")

    with open(os.devnull, "w") as nowhere:
        out, sys.stdout = sys.stdout, nowhere
        try:
            started = time.perf_counter(), sum(os.times()[:4])
            adapt()
            ended = time.perf_counter(), sum(os.times()[:4])
            # Its templates keep the standard output that they began with.
            convert_msg_to_idl(ten.parent, "ten_msgs", pathlib.Path("msg/Ten.msg"), folder / "ten_idl" / "msg")
        finally:
            sys.stdout = out
    print(f"rosidl, .msg to .idl: {ended[0] - started[0]:.2f} s wall, {ended[1] - started[1]:.2f} s of processors")
    timed("rosidl, parsing the .idl", parse)

    def generated_by(language, root, package, names):
        """The generator of a language as rosidl's CMake calls it; returns the folder of its results."""
        results = folder / f"rosidl_{language}_{package}"
        arguments = {
            "package_name": package,
            "output_dir": str(results / package),
            "template_dir": f"/usr/share/rosidl_generator_{language}/resource",
            "idl_tuples": [f"{root}:msg/{name}.idl" for name in names],
            "ros_interface_dependencies": [],
            "target_dependencies": [],
        }
        (folder / "arguments.json").write_text(json.dumps(arguments))
        # A process of its own, as its CMake does.
        run("/usr/bin/python3", "-W", "ignore", f"/usr/libexec/rosidl/rosidl_generator_{language}", "--generator-arguments-file", folder / "arguments.json")
        return results

    names = [path.stem for path in FILES]
    timed("rosidl, C from the .idl", lambda: generated_by("c", folder / "idl" / NAME, NAME, names))
    timed("rosidl, C++ from the .idl", lambda: generated_by("cpp", folder / "idl" / NAME, NAME, names))
    headers = [f"-I{path}" for path in sorted(pathlib.Path("/usr/include").iterdir()) if path.name.startswith(("rosidl_", "rcutils"))]
    c = folder / f"rosidl_c_{NAME}"
    visibility = c / NAME / "msg" / "rosidl_generator_c__visibility_control.h"
    visibility.write_text(f"#define ROSIDL_GENERATOR_C_PUBLIC_{NAME}\n")
    sources = sorted((c / NAME / "msg" / "detail").glob("*__functions.c"))
    (folder / "all.c").write_text("".join(f'#include "{source}"\n' for source in sources))
    timed(f"gcc -O1 of rosidl's C ({len(sources)} files as one; init, copy, compare: no bytes)", lambda: run("gcc", "-std=gnu99", "-O1", "-w", "-c", *headers, f"-I{c}", folder / "all.c", "-o", folder / "all.o"))

    cpp = generated_by("cpp", folder / "ten_idl", "ten_msgs", ["Ten"])
    (cpp / "ten_msgs" / "msg" / "rosidl_generator_cpp__visibility_control.hpp").write_text("")
    (folder / "two.cpp").write_text('#include "ten_msgs/msg/ten.hpp"\n')
    timed("g++ -fsyntax-only of rosidl's header of the same type", lambda: run("g++", "-std=c++17", "-fsyntax-only", *headers, f"-I{cpp}", folder / "two.cpp"))
    (folder / "c").mkdir()
    # idlc knows no @verbatim with several texts.
    for path in FILES:
        file = idl / f"{path.stem}.idl"
        file.write_text(re.sub(r"@verbatim \(.*?\)\n", "", file.read_text(), flags=re.S))
    timed("idlc, C, a process for each file", idlc)
    sources = sorted((folder / "c").glob("**/*.c"))
    if sources and pathlib.Path("/usr/include/dds/ddsc").is_dir():
        (folder / "all.c").write_text("".join(f'#include "{source}"\n' for source in sources))
        timed(f"gcc -O1 of idlc's C ({len(sources)} files as one; tables for an interpreter)", lambda: run("gcc", "-std=c99", "-O1", "-w", "-c", f"-I{folder / 'c'}", folder / "all.c", "-o", folder / "all.o"))
