//! That a job never ran, and whether another try makes sense.

use super::ask::RequestRefusal;
use crate::runner::evidence::Never;

/// It never ran, and another try makes sense.
pub(super) fn later(why: String) -> Never {
    Never { why, surroundings: true }
}

/// It never ran, and another try makes no sense.
pub(super) fn never(why: String) -> Never {
    Never { why, surroundings: false }
}

pub(super) fn told(refused: RequestRefusal) -> Never {
    match refused {
        RequestRefusal::Never(why) | RequestRefusal::NotFound(why) => never(why),
        RequestRefusal::Now(why)
        | RequestRefusal::Unauthorized(why)
        | RequestRefusal::Unreached(why)
        | RequestRefusal::Doubtful(why)
        | RequestRefusal::Unpermitted(why) => later(why),
    }
}
