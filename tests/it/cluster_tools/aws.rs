//! An image with the real `aws` CLI (version 1, a program of Python) and the wrapper, made of what
//! this machine has: no image with it can be pulled.

use std::path::{Path, PathBuf};
use std::process::Command;

use tests::cluster::Image;
use tests::{programs, skip};

/// Prints what the CLI needs: the interpreter, where its packages lie, and each file. Of the models
/// of hundreds of services it needs the two that are asked, and of the others that they are there.
const FILES: &str = r#"
import os, sys, sysconfig
import awscli.clidriver, botocore.endpoint, botocore.httpsession
awscli.clidriver.create_clidriver()
paths = sysconfig.get_paths()
stdlib, packages = os.path.realpath(paths["stdlib"]), paths["purelib"]
print(os.path.realpath(sys.executable))
print(packages)
left_out = {"test", "tests", "idlelib", "lib2to3", "tkinter", "turtledemo",
            "ensurepip", "site-packages", "dist-packages", "examples", "topics"}
models = {"ecs", "sts"}
data = os.path.join(packages, "botocore", "data") + os.sep
def walk(top):
    for directory, below, files in os.walk(top):
        below[:] = [name for name in below
                    if name not in left_out and not name.startswith("config-")]
        service = directory.removeprefix(data).split(os.sep)[0]
        is_named = directory.startswith(data) and service not in models
        for name in files:
            path = os.path.join(directory, name)
            if is_named and name.startswith("service-2."):
                print("-" + path.removesuffix(".gz"))
            elif not is_named and not name.endswith((".a", ".opt-1.pyc", ".opt-2.pyc")):
                print("+" + path)
walk(stdlib)
loaded = {name.split(".")[0] for name in list(sys.modules)}
for name in sorted(loaded):
    path = os.path.join(packages, name)
    if os.path.isdir(path):
        walk(path)
    elif os.path.isfile(path + ".py"):
        print("+" + path + ".py")
"#;

/// The image of this name; none, counted as skipped, where there is no such CLI.
pub(super) fn image(name: &str, test: &str) -> Option<Image> {
    let Some(cli) = skip::tool("aws") else {
        skip::skipped(test, "aws is not on PATH");
        return None;
    };
    let output = Command::new(interpreter(&cli)).args(["-c", FILES]).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        skip::skipped(test, "the aws on PATH is not version 1, by a Python that is there");
        return None;
    };
    let text = String::from_utf8(output.stdout).expect("paths are UTF-8");
    let mut lines = text.lines();
    let (python, packages) = lines.next().zip(lines.next()).expect("both are printed first");
    let start = format!("#!/bin/sh\nPYTHONPATH={packages} exec {python} -m awscli \"$@\"\n");
    let inside = |path: &str| path.trim_start_matches('/').to_owned();
    let image = Image::with_tools(name)
        .program("pvn-wrapper", &programs::program("pvn-wrapper"))
        .program(&inside(python), Path::new(python))
        .script("bin/aws", &start);
    Some(lines.fold(image, |image, line| {
        let (kind, file) = line.split_at(1);
        let path = Path::new(file);
        match kind {
            "-" => image.script(&inside(file), "{}"),
            _ if path.extension().is_some_and(|extension| extension == "so") => {
                image.program(&inside(file), path)
            }
            _ => image.file(&inside(file), path),
        }
    }))
}

/// Of the script's first line, if that names one; a shim is a script of a shell.
fn interpreter(cli: &Path) -> PathBuf {
    let bytes = std::fs::read(cli).unwrap_or_default();
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let named = std::str::from_utf8(first).ok().and_then(|line| line.strip_prefix("#!"));
    match named.map(str::trim).filter(|line| line.contains("python") && !line.contains(' ')) {
        Some(interpreter) => interpreter.into(),
        None => "python3".into(),
    }
}
