//! A command that is given as a `taskConfig`. Called by `commands`.

use config::template::Template;
use config::{NotHere, Program, TaskConfig, not_here};
use schema::status::JobKind;

use super::super::cluster::{self, TaskTexts};
use super::super::problem::{DocumentField, Problems};
use super::super::template::{self, Rendered};
use super::super::{Command, RunTarget as JobPlace, WRAPPER_CONTAINER, parameters};
use super::{Maker, render_text};

impl Maker<'_> {
    pub(super) fn task(
        &self,
        kind: JobKind,
        task: &TaskConfig,
        on: Option<&JobPlace>,
        place: &DocumentField,
        problems: &mut Problems,
    ) -> Command {
        if matches!(on, Some(JobPlace::Local { .. })) {
            for NotHere { field, message, help } in not_here(task, self.options.everything_local) {
                let place = field.iter().fold(place.clone(), |place, field| place.field(field));
                problems.add(place.problem(message).help(help));
            }
        }
        if task.retry_config.is_some() {
            let problem =
                place.field("retryConfig").problem("not supported yet: `retryConfig` of a task");
            problems.add(problem.help("use `retryPolicy` of the command"));
        }
        let program = &task.program;
        let inner = place.field("program");
        let image = self.image(program, &inner, problems);
        if matches!(on, Some(JobPlace::Cluster(_))) {
            self.check_image(program, &inner, problems);
        }
        let mut list = |list: &[Template], field: &str| -> Vec<String> {
            let place = inner.field(field);
            list.iter()
                .enumerate()
                .map(|(index, argument)| self.text(argument, &place.item(index), problems))
                .collect()
        };
        let (entrypoint, cmd) =
            (list(&program.entrypoint, "entrypoint"), list(&program.cmd, "cmd"));
        let argv = [entrypoint.as_slice(), &cmd].concat();
        let directory = program.working_directory.as_ref();
        let working_directory =
            directory.map(|text| self.text(text, &inner.field("workingDirectory"), problems));
        let on_cluster = matches!(on, Some(JobPlace::Cluster(_)));
        // The name of a container is a label, which `getInfo` is not.
        let default =
            || if on_cluster { kind.to_string().to_lowercase() } else { kind.to_string() };
        let name = program.name.clone().unwrap_or_else(default);
        if on_cluster && name == WRAPPER_CONTAINER {
            problems.add(
                inner
                    .field("name")
                    .problem(cluster::name_is_taken())
                    .help("call it something else"),
            );
        }
        let texts = TaskTexts {
            name: name.clone(),
            image,
            entrypoint,
            cmd,
            working_directory: working_directory.clone(),
        };
        let job = if on_cluster {
            cluster::task_job(task, texts, place, problems).map(Box::new)
        } else {
            None
        };
        Command {
            name,
            argv,
            env: Vec::new(),
            working_directory,
            expect: None,
            leave_running: task.leave_running,
            stop_grace_ms: task.stop_grace.map(|grace| grace.as_ms().unsigned_abs()),
            job,
        }
    }

    fn image(
        &self,
        program: &Program,
        place: &DocumentField,
        problems: &mut Problems,
    ) -> Option<String> {
        // Of a local task the image is not used, and its names are checked all the same.
        let image =
            program.image.as_ref().map(|image| self.text(image, &place.field("image"), problems));
        let tag = program
            .image_tag
            .as_ref()
            .map(|tag| self.text(tag, &place.field("imageTag"), problems));
        image.or_else(|| {
            tag.map(|tag| parameters::image_reference(program.image_registry_info.as_ref(), &tag))
        })
    }

    /// That an image that a parameter names is named by its value.
    fn check_image(&self, program: &Program, place: &DocumentField, problems: &mut Problems) {
        let Some(image) = &program.image else { return };
        let rendered = template::render(image, self.scope);
        if matches!(rendered, Ok(Rendered::Text(text)) if text.is_empty()) {
            let problem = place.field("image").problem(format!(
                "there is no image to run on a Kubernetes runtime: `{}` is empty",
                image.as_str()
            ));
            problems.add(problem.help("the service says which image it is"));
        }
    }

    fn text(&self, text: &Template, place: &DocumentField, problems: &mut Problems) -> String {
        render_text(text, self.scope, place, problems)
    }
}
