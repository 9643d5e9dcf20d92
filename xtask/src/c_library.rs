//! The library for C and C++: built, installed, and tested as its users get it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{ahead, setup, shell};

/// The interface's number, as in the build script of `noctule-ffi`: programs look for this file.
const LIBRARY: &str = "libnoctule.so.0";
/// A compiler's flags, and what the name of the program ends with.
const SANITIZERS: [(&str, &str); 2] = [("", ""), ("-fsanitize=address,undefined", "_sanitized")];
const WARNINGS: &str = "-Wall -Wextra -Wpedantic -Wconversion -Werror -g";

/// The library, and the generator that is installed with it.
pub const BUILDS: [&str; 2] = [
    "cargo build --release --locked --package noctule-ffi",
    "cargo build --release --locked --package noctule-codegen --features noctule-codegen/command",
];

/// Builds the library and installs it: headers, libraries, CMake package, pkg-config file. The
/// installed folder may be moved.
pub fn install(prefix: &Path) -> Result<(), String> {
    BUILDS.into_iter().try_for_each(ahead::build)?;
    let root = shell::root();
    let built = root.join("target/release");
    let (headers, libraries) = (prefix.join("include/noctule"), prefix.join("lib"));
    for name in [
        "noctule.h",
        "noctule.hpp",
        "action.h",
        "action.hpp",
        "parameter.hpp",
        "request.hpp",
        "sample.hpp",
        "cdr.hpp",
        "typed.hpp",
        "plain.hpp",
        "service.hpp",
        "typed_action.hpp",
    ] {
        copy(&root.join("c/include/noctule").join(name), &headers.join(name))?;
    }
    // Compiler flags for generated code in C and C++.
    copy(&root.join("c/noctule_cdr.h"), &headers.join("noctule_cdr.h"))?;
    copy(&built.join("libnoctule.so"), &libraries.join(LIBRARY))?;
    copy(&built.join("libnoctule.a"), &libraries.join("libnoctule.a"))?;
    copy(&built.join("noctule-gen"), &prefix.join("bin/noctule-gen"))?;
    shell::run_in(&prefix.join("bin"), "strip --strip-debug noctule-gen")?;
    // Nine tenths of them.
    shell::run_in(&libraries, &format!("strip --strip-debug {LIBRARY} libnoctule.a"))?;
    let link = libraries.join("libnoctule.so");
    // The link of an earlier version, if there is one.
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(LIBRARY, &link).map_err(|e| format!("{}: {e}", link.display()))?;
    for (name, folder) in [
        ("noctule.pc", "pkgconfig"),
        ("noctule-config.cmake", "cmake/noctule"),
        ("noctule-config-version.cmake", "cmake/noctule"),
        ("noctule-generate.cmake", "cmake/noctule"),
    ] {
        let to = libraries.join(folder).join(name);
        copy(&root.join("c/package").join(name), &to)?;
        let text = fs::read_to_string(&to).map_err(|e| format!("{}: {e}", to.display()))?;
        let text = text.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        fs::write(&to, text).map_err(|e| format!("{}: {e}", to.display()))?;
    }
    println!("installed into {}", prefix.display());
    Ok(())
}

/// Folder into which the tests install it.
pub fn prefix() -> PathBuf {
    shell::root().join("target/c/prefix")
}

/// Builds the tests in C and C++ against what was installed, plain and with the sanitizers, and runs them.
pub fn test() -> Result<(), String> {
    setup::run()?;
    install(&prefix())?;
    let folder = shell::root().join("target/c");
    let run = |line: &str| shell::run_in(&folder, line);
    let package = |flags: &str| format!("$(PKG_CONFIG_PATH=prefix/lib/pkgconfig pkg-config {flags} noctule)");
    let shared = format!("{} -Wl,-rpath,$PWD/prefix/lib", package("--cflags --libs"));
    let whole = format!("{} prefix/lib/libnoctule.a -lpthread -ldl -lm", package("--cflags"));
    let (c, cpp) = ("gcc -std=c99", "g++ -std=c++17");
    for (compiler, source, library, program) in [
        (c, "library.c", &shared, "library_c"),
        (c, "library.c", &whole, "library_c_static"),
        (c, "action.c", &shared, "action_c"),
        (c, "options.c", &shared, "options_c"),
        (cpp, "library.cpp", &shared, "library_cpp"),
    ] {
        for (sanitizer, suffix) in SANITIZERS {
            let source = format!("../../c/tests/{source}");
            run(&format!("{compiler} {WARNINGS} {sanitizer} {source} {library} -o {program}{suffix}"))?;
            run(&format!("timeout 60 ./{program}{suffix} $((1000 + $$ % 4000))"))?;
        }
    }
    run("prefix/bin/noctule-gen ../../c/tests/typed/topics.toml --out typed")?;
    for (sanitizer, suffix) in SANITIZERS {
        let source = "-Ityped/c ../../c/tests/typed_action.c typed/c/*.c";
        run(&format!("{c} {WARNINGS} {sanitizer} {source} {shared} -o typed_action_c{suffix}"))?;
        run(&format!("timeout 60 ./typed_action_c{suffix} $((1000 + $$ % 4000))"))?;
    }
    for (compiler, source, program) in
        [(c, "keep_all.c", "keep_all_c"), (cpp, "keep_all.cpp", "keep_all_cpp")]
    {
        run(&format!("{compiler} {WARNINGS} ../../c/tests/{source} {shared} -o {program}"))?;
    }
    // Between two hosts; where there cannot be any, the script says so and ends with 77.
    for writer in ["keep_all_c $domain write", "keep_all_cpp $domain"] {
        run(&format!(
            "domain=$((1000 + $$ % 4000)); \
             ../../c/tests/two_hosts.sh 5 \"./{writer}\" \"./keep_all_c $domain read\" || [ $? = 77 ]"
        ))?;
    }
    Ok(())
}

/// Copies a file into a folder that is made if it is not there. A new file takes the place of the old
/// one at once, so that a program that runs with the old library goes on with it.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let fresh = to.with_extension("new");
    fs::copy(from, &fresh)
        .map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), fresh.display()))?;
    fs::rename(&fresh, to).map_err(|e| format!("cannot write {}: {e}", to.display()))
}
