//! What a service gives its runtime in a channel: all parameters that are required, and none that
//! is not there.

use super::unknown;
use crate::diagnostic::Diagnostic;
use crate::{
    CustomRuntimeValues, Document, EffectiveRuntime, ParameterDefinition, PerReleaseChannel,
    ReleaseChannel, Service,
};

/// A service in a channel, with what it says of that channel and where.
pub(super) struct ServiceValues<'a> {
    pub(super) document: &'a Document,
    pub(super) service: &'a Service,
    pub(super) channel: &'a ReleaseChannel,
    pub(super) own: Option<(usize, &'a PerReleaseChannel)>,
}

impl ServiceValues<'_> {
    pub(super) fn check(
        &self,
        runtime: &str,
        commands: &EffectiveRuntime<'_>,
        problems: &mut Vec<Diagnostic>,
    ) {
        self.check_required(runtime, commands, problems);
        self.check_known(runtime, commands, problems);
    }

    /// The values under `customRuntime`, and where they stand.
    fn values(&self) -> impl Iterator<Item = (&CustomRuntimeValues, String)> {
        let of_channel = self.own.and_then(|(index, own)| {
            let at = format!("/service/perReleaseChannel/{index}/customRuntime");
            Some((own.custom_runtime.as_ref()?, at))
        });
        let of_service = self.service.custom_runtime.as_ref();
        of_service
            .map(|values| (values, "/service/customRuntime".to_owned()))
            .into_iter()
            .chain(of_channel)
    }

    fn check_required(
        &self,
        runtime: &str,
        commands: &EffectiveRuntime<'_>,
        problems: &mut Vec<Diagnostic>,
    ) {
        let block = self.service.block(self.own.map(|(_, own)| own));
        let block = block.filter(|block| commands.takes(block));
        let given = |name: &str| {
            let mut values = self.values().flat_map(|(values, _)| &values.parameter_values);
            values.any(|value| value.name == name)
                || block.iter().flat_map(|block| &block.values).any(|value| value.parameter == name)
        };
        let parameters = &commands.custom().parameters;
        let required = |parameter: &&ParameterDefinition| {
            parameter.required && !parameter.kind.has_default() && !given(&parameter.name)
        };
        for parameter in parameters.iter().filter(required) {
            let description = parameter
                .description
                .as_deref()
                .map(|text| format!(" ({text})"))
                .unwrap_or_default();
            let message = format!(
                "parameter `{}`{description} is required and has no value in release channel `{}`",
                parameter.name, self.channel.name
            );
            let problem = self.document.problem("/service", message);
            problems.push(problem.help(commands.asks(runtime)));
        }
    }

    fn check_known(
        &self,
        runtime: &str,
        commands: &EffectiveRuntime<'_>,
        problems: &mut Vec<Diagnostic>,
    ) {
        let parameters = &commands.custom().parameters;
        let known: Vec<&str> = parameters.iter().map(|known| known.name.as_str()).collect();
        let what = format!("parameter of runtime `{runtime}`:");
        for (values, at) in self.values() {
            for (index, value) in values.parameter_values.iter().enumerate() {
                if !known.contains(&value.name.as_str()) {
                    let pointer = format!("{at}/parameterValues/{index}/name");
                    problems.push(unknown(self.document, &pointer, &what, &value.name, &known));
                }
            }
        }
    }
}
