//! Secrets as people set and delete them.

use super::{Rig, caller};

#[tokio::test]
async fn versions_of_a_secret_count_up_for_ever() {
    let rig = Rig::start(|_| Some(0)).await;
    let set = async |value: &str| rig.handle.set_secret("token".to_owned(), value.into(), caller("eve")).await.unwrap();
    assert_eq!([set("a").await, set("b").await], [1, 2]);
    rig.handle.delete_secret("token".to_owned(), caller("eve")).await.unwrap();
    assert!(rig.handle.delete_secret("token".to_owned(), caller("eve")).await.is_err(), "it is gone");
    assert_eq!(set("c").await, 3, "version 1 never means another value");
    rig.handle.delete_secret("token".to_owned(), caller("eve")).await.unwrap();
    assert_eq!(set("d").await, 4);
    assert!(rig.store.secret("token", 3).await.unwrap().is_none());
}
