//! Writes what is made from the types: the JSON Schemas in `schema/json/`, and the pages
//! `docs/config.md` and `docs/words.md`. Run it when a test says that they drifted.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = root.join("../json");
    std::fs::create_dir_all(&directory)?;
    config::schemas::emitted()
        .into_iter()
        .try_for_each(|(name, text)| std::fs::write(directory.join(name), text))?;
    std::fs::write(root.join("../../docs/config.md"), config::schemas::manual())?;
    std::fs::write(root.join("../../docs/words.md"), config::schemas::words())
}
