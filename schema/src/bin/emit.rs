//! Writes the JSON Schemas that are made from the types into `schema/json/`. Run it when a test says that they drifted.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("json");
    std::fs::create_dir_all(&directory)?;
    schema::schemas::emitted().into_iter().try_for_each(|(name, text)| std::fs::write(directory.join(name), text))
}
