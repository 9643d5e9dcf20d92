"""Expands the .tlc of generated blocks by our own reading of the language, not by MathWorks' compiler, into a model in C.

Arguments: the folder of the blocks, where the model goes, then pairs of blocks, one that writes and one that reads the same message.
Knows %implements, %function, %endfunction, %<...> and %%; everything else that begins with % is an error, as are functions of the
library that are not listed here. The model writes its inputs until it reads them back, and ends with 0.
"""

import pathlib
import re
import sys

FOLDER, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
TYPES = ["real_T", "real32_T", "int8_T", "uint8_T", "int16_T", "uint16_T", "int32_T", "uint32_T", "boolean_T"]
FUNCTIONS = {"BlockTypeSetup": "void", "Start": "Output", "Outputs": "Output", "Update": "Output", "Terminate": "Output"}


def wrong(path, number, what):
    sys.exit(f"{path.name}:{number}: {what}")


class Block:
    """One block: its ports by its .m, its functions by its .tlc."""

    def __init__(self, name):
        self.name, self.functions, self.headers, self.sources = name, {}, [], []
        text = (FOLDER / f"{name}.m").read_text()
        table = text[text.index("list = {") :]
        self.ports = [(path, int(size), int(kind)) for path, size, kind in re.findall(r"'([^']+)', (\d+), (\d+)", table)]
        self.writes = "block.NumOutputPorts = 0;" in text
        self.topic = re.search(r"WriteRTWParam\('string', 'Topic', '([^']*)'\)", text)[1]
        self.parse(FOLDER / f"{name}.tlc")

    def parse(self, path):
        inside = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("%%") or not line.strip():
                continue
            if line.startswith("%implements"):
                if line != f'%implements "{self.name}" "C"':
                    wrong(path, number, "it implements another block")
            elif match := re.fullmatch(r"%function (\w+)\(block, system\) (\w+)", line):
                if inside or FUNCTIONS.get(match[1]) != match[2] or match[1] in self.functions:
                    wrong(path, number, f"the function {match[1]} is not expected here")
                inside = match[1]
                self.functions[inside] = []
            elif line == "%endfunction":
                if not inside:
                    wrong(path, number, "no function ends here")
                inside = None
            elif line.startswith("%") or (line.lstrip().startswith("%") and not line.lstrip().startswith("%<")):
                wrong(path, number, f"{line.split()[0]} is not known")
            elif not inside:
                wrong(path, number, "text outside of a function")
            else:
                self.functions[inside].append(self.expanded(path, number, line))
        if inside:
            wrong(path, "end", f"{inside} has no end")
        missing = {"BlockTypeSetup", "Start", "Terminate", "Update" if self.writes else "Outputs"} - self.functions.keys()
        if missing:
            wrong(path, "end", f"there is no {missing.pop()}")

    def expanded(self, path, number, line):
        result = re.sub(r"%<([^<>]*)>", lambda match: self.value(path, number, match[1]), line)
        if "%<" in result:
            wrong(path, number, "a %< does not close")
        return result

    def value(self, path, number, expression):
        if expression == "SFcnParamSettings.Topic":
            return self.topic
        if match := re.fullmatch(r'LibBlock(Input|Output)Signal(Addr)?\((\d+), "", "", (\d+)\)', expression):
            way, address, port, element = match[1], match[2], int(match[3]), int(match[4])
            if (way == "Input") != self.writes or port >= len(self.ports) or element >= self.ports[port][1]:
                wrong(path, number, f"there is no {way} {port} with an element {element}")
            return f"{'&' if address else ''}{self.name}_{port}[{element}]"
        if expression == 'LibBlockDWork(handle, "", "", 0)':
            return f"{self.name}_handle"
        if match := re.fullmatch(r'LibAddToCommonIncludes\("(\w+\.h)"\)', expression):
            self.headers.append(match[1])
            return ""
        if match := re.fullmatch(r'LibAddToModelSources\("(\w+)"\)', expression):
            if not (FOLDER / f"{match[1]}.c").is_file():
                wrong(path, number, f"there is no {match[1]}.c")
            self.sources.append(match[1])
            return ""
        wrong(path, number, f"{expression} is not known")

    def text(self, name):
        lines = self.functions.get(name, [])
        return f"static void {self.name}_{name}(void) {{\n" + "\n".join(lines) + "\n}\n"


def filled(writer):
    """C that gives each input of a block a value; lengths are 1, and what they count is not zero in its first element."""
    for index, (path, size, kind) in enumerate(writer.ports):
        name = f"{writer.name}_{index}"
        if path.endswith("Length"):
            yield f"    for (i = 0; i < {size}; i++) {name}[i] = 0;"
        elif kind == 3 and index + 1 < len(writer.ports) and writer.ports[index + 1][0] == f"{path}_SL_Info.CurrentLength":
            yield f"    for (i = 0; i < {size}; i++) {name}[i] = 0;"
        elif kind == 8:
            yield f"    for (i = 0; i < {size}; i++) {name}[i] = (boolean_T)(i % 2 == 0);"
        else:
            yield f"    for (i = 0; i < {size}; i++) {name}[i] = ({TYPES[kind]})(i + {index} + 1);"


def counted(writer):
    """Ports whose elements all travel: those that no length counts, themselves or around them."""
    counts = {path.rsplit("_SL_Info.", 1)[0] for path, _, _ in writer.ports if path.endswith("Length")}
    for index, (path, _, _) in enumerate(writer.ports):
        ways = {path[:at] for at in range(len(path)) if path[at] == "."} | {path}
        if not path.endswith("Length") and not ways & counts:
            yield index


pairs = [(Block(one), Block(other)) for one, other in zip(sys.argv[3::2], sys.argv[4::2])]
blocks = [block for pair in pairs for block in pair]
text = ["/* Expanded from .tlc files by a test. */", "#include <stdio.h>", "#include <string.h>", "#include <time.h>"]
text += ['#include "rtwtypes.h"'] + [f'#include "{header}"' for header in sorted({header for block in blocks for header in block.headers})]
for block in blocks:
    text.append(f"static int32_T {block.name}_handle;")
    text += [f"static {TYPES[kind]} {block.name}_{index}[{size}];" for index, (_, size, kind) in enumerate(block.ports)]
    text += [block.text(name) for name in block.functions if name != "BlockTypeSetup"]
for number, (writer, reader) in enumerate(pairs):
    status = len(reader.ports) - len(writer.ports)
    if [port[1:] for port in reader.ports[status:]] != [port[1:] for port in writer.ports]:
        sys.exit(f"{writer.name} and {reader.name} have different ports")
    text.append(f"static void fill_{number}(void) {{\n    int i;")
    text += list(filled(writer)) + ["}", f"static int is_same_{number}(void) {{", f"    if (!{reader.name}_0[0]) return 0;"]
    for index in counted(writer):
        one, other = f"{writer.name}_{index}", f"{reader.name}_{index + status}"
        text.append(f"    if (memcmp({one}, {other}, sizeof {one}) != 0) return 0;")
    text.append(f"    return {reader.name}_1[0] > 0 && {reader.name}_1[0] < 60 && {reader.name}_2[0] == 0;\n}}")
text.append("int main(void) {\n    const struct timespec period = {0, 5000000};\n    int tick, is_done = 0;")
text += [f"    {block.name}_Start();" for block in blocks]
text += [f"    if ({block.name}_handle < 0) return 1;" for block in blocks]
text += [f"    int was_same_{number} = 0;" for number in range(len(pairs))]
text += [f"    fill_{number}();" for number in range(len(pairs))]
text.append("    for (tick = 0; tick < 4000 && !is_done; tick++) {")
for number, (writer, reader) in enumerate(pairs):
    text += [f"        {reader.name}_Outputs();", f"        {writer.name}_Update();", f"        was_same_{number} |= is_same_{number}();"]
text.append("        is_done = " + " && ".join(f"was_same_{number}" for number in range(len(pairs))) + ";")
text.append("        nanosleep(&period, NULL);\n    }")
text += [f"    {block.name}_Terminate();" for block in blocks]
text.append('    printf("%s after %d steps\\n", is_done ? "complete" : "no message came back whole", tick);\n    return is_done ? 0 : 1;\n}\n')
OUT.mkdir(exist_ok=True)
(OUT / "model.c").write_text("\n".join(text))
(OUT / "sources.txt").write_text("\n".join(sorted({source for block in blocks for source in block.sources})) + "\n")
(OUT / "rtwtypes.h").write_text(
    """/* Types that Simulink Coder's code uses, by their documented names: a stand-in of ours. */
#ifndef RTWTYPES_H
#define RTWTYPES_H
#include <stdint.h>
typedef double real_T;
typedef float real32_T;
typedef int8_t int8_T;
typedef uint8_t uint8_T;
typedef int16_t int16_T;
typedef uint16_t uint16_T;
typedef int32_t int32_T;
typedef uint32_t uint32_T;
typedef unsigned char boolean_T;
#endif
"""
)
