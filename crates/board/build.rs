//! Compiles `c/noctule_client.c`.

fn main() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../c");
    for file in ["noctule_client.c", "noctule_client.h", "noctule_cdr.h", "noctule_sync.h"] {
        println!("cargo:rerun-if-changed={folder}/{file}");
    }
    println!("cargo:rerun-if-changed=src/layout.c");
    cc::Build::new()
        .file(format!("{folder}/noctule_client.c"))
        .file("src/layout.c")
        .include(folder)
        .std("c99")
        .warnings(true)
        .extra_warnings(true)
        .compile("noctule_client");
}
