//! The guide: what its example prints.

#[expect(dead_code, reason = "its main prints, which a test cannot read")]
#[path = "../../examples/consumer-hello.rs"]
mod hello;

#[tokio::test]
async fn the_example_prints_what_the_guide_says() {
    let lines = hello::run().await.expect("the example runs");
    let guide = include_str!("../../../../docs/consumer.md");
    let printed = lines.join("\n");
    assert!(guide.contains(&printed), "{printed}");
}
