//! The same work as a pipeline.

use super::{Plan, task_id};
use lockgate_engine::id::GateId;
use lockgate_engine::spec::workflow::{Output, Pipeline, PipelinePhase, Workstream};

impl Plan {
    pub(super) fn spec(&self) -> Pipeline {
        let phases = self.phases.iter().enumerate().map(|(index, phase)| PipelinePhase {
            name: format!("p{index}"),
            workstreams: (0..phase.tasks.len()).map(|task| task_id(index, task)).collect(),
            gates: (0..phase.gates).map(|gate| GateId::new(format!("g{gate}"))).collect(),
        });
        let phases: Vec<PipelinePhase> = phases.collect();
        let workstreams = phases.iter().flat_map(|phase| &phase.workstreams).map(|id| Workstream {
            id: id.clone(),
            name: String::new(),
            executor: None,
            outputs: vec![Output { said: "made.txt".into(), path: Some("made.txt".into()) }],
            gates: Vec::new(),
        });
        let workstreams = workstreams.collect();
        Pipeline { prd: "PRD-001".into(), title: "simulated".into(), phases, workstreams, ..Pipeline::default() }
    }
}
