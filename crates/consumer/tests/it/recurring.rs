//! Recurring tasks against a broker in this process.

use std::time::Duration;

use moldau_consumer::testing::TestBroker;
use moldau_consumer::{
    App, Missed, Outcome, Recurring, RecurringTasks, Run, RunCause, State, TaskStatus,
    TopicDeclaration,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::world::{DEADLINE, GROUP};

const TASKS: &str = "tasks";

fn compacted() -> TopicDeclaration {
    let any_time = ("message.timestamp.after.max.ms", i64::MAX);
    let topic = TopicDeclaration::partitions(2).config("cleanup.policy", "compact");
    topic.config(any_time.0, any_time.1)
}

async fn broker() -> TestBroker {
    let broker = TestBroker::start();
    let none: [Recurring; 0] = [];
    let app = broker.app(GROUP).declare(TASKS, compacted()).recurring(TASKS, none);
    let plan = app.expect("no name is twice").topics().plan().await.expect("an answer");
    plan.apply().await.expect("it can be created");
    broker
}

async fn report(run: Run, State(sender): State<UnboundedSender<Run>>) -> Result<(), String> {
    sender.send(run).map_err(|error| error.to_string())
}

fn hourly(name: &str) -> Recurring {
    Recurring::cron(name, "0 * * * *", report).expect("it is valid")
}

fn app(broker: &TestBroker, sender: &UnboundedSender<Run>, tasks: Vec<Recurring>) -> App {
    let app = broker.app(GROUP).state(sender.clone());
    app.recurring(TASKS, tasks).expect("the names differ")
}

async fn next(runs: &mut UnboundedReceiver<Run>) -> Run {
    let run = tokio::time::timeout(DEADLINE, runs.recv()).await;
    run.expect("a run comes").expect("the app runs")
}

/// The state of a task, once it is as wanted.
async fn status(
    control: &RecurringTasks,
    task: &str,
    is_wanted: impl Fn(&TaskStatus) -> bool,
) -> TaskStatus {
    let look = async {
        loop {
            let tasks = control.list().await.expect("the topic can be read");
            if let Some(found) = tasks.into_iter().find(|it| it.task == task && is_wanted(it)) {
                return found;
            }
        }
    };
    tokio::time::timeout(DEADLINE, look).await.expect("it comes to that")
}

fn runs_of(status: &TaskStatus) -> usize {
    status.runs.len()
}

#[tokio::test]
async fn two_processes_run_each_task_once_at_its_times() {
    let broker = broker().await;
    let control = RecurringTasks::new(broker.cluster().await, TASKS);
    let (sender, mut runs) = unbounded_channel();
    let names = ["audit", "mail", "report", "sweep"];
    let apps = [0, 1].map(|_| app(&broker, &sender, names.map(hourly).to_vec()));
    let assignments = apps.each_ref().map(|app| app.control().assignment());
    let (ends, ended): (Vec<_>, Vec<_>) =
        [0, 1].map(|_| oneshot::channel::<()>()).into_iter().unzip();
    let running = apps.into_iter().zip(ended).map(|(app, end)| app.run(async { drop(end.await) }));
    let test = async {
        for mut assignment in assignments {
            assignment.wait_for(|it| it.len() == 1).await.expect("the app runs");
        }
        for name in names {
            status(&control, name, |it| it.running.is_none()).await;
        }
        for round in 1..=3 {
            broker.clock().advance(Duration::from_hours(1));
            let mut seen = Vec::new();
            for _name in names {
                let run = next(&mut runs).await;
                assert_eq!(run.due().as_secs() % 3_600, 0, "{run:?}");
                seen.push(run.task().to_owned());
            }
            seen.sort_unstable();
            assert_eq!(seen, names, "each once");
            for name in names {
                let status = status(&control, name, |it| runs_of(it) == round).await;
                assert_eq!(status.runs.back().expect("a run").outcome, Outcome::Succeeded);
            }
        }
        drop(ends);
    };
    let (ended, ()) = tokio::join!(futures_util::future::join_all(running), test);
    assert!(ended.into_iter().all(|it| it.is_ok()));
    assert!(runs.try_recv().is_err(), "no further run");
}

#[tokio::test]
async fn commands_enable_disable_and_trigger_and_survive_restarts() {
    let broker = broker().await;
    let control = RecurringTasks::new(broker.cluster().await, TASKS);
    let (sender, mut runs) = unbounded_channel();
    // Commands for a task that waits for its process.
    control.disable("report").await.expect("it is sent");
    control.trigger("report").await.expect("it is sent");
    let first = app(&broker, &sender, vec![hourly("report")]);
    first
        .run(async {
            assert_eq!(next(&mut runs).await.cause(), RunCause::Triggered);
            status(&control, "report", |it| runs_of(it) == 1 && !it.enabled).await;
        })
        .await
        .expect("it runs");
    broker.clock().advance(Duration::from_hours(3));
    let second = app(&broker, &sender, vec![hourly("report")]);
    second
        .run(async {
            // It is still disabled, and the trigger is not obeyed again.
            control.enable("report").await.expect("it is sent");
            status(&control, "report", |it| it.enabled).await;
            broker.clock().advance(Duration::from_hours(1));
            let run = next(&mut runs).await;
            assert_eq!((run.cause(), runs.is_empty()), (RunCause::Due, true));
            status(&control, "report", |it| runs_of(it) == 2).await;
        })
        .await
        .expect("it runs");
}

#[tokio::test]
async fn one_run_makes_up_for_the_time_that_the_group_was_down() {
    let broker = broker().await;
    let control = RecurringTasks::new(broker.cluster().await, TASKS);
    let (sender, mut runs) = unbounded_channel();
    let tasks = || vec![hourly("report"), hourly("mail").missed(Missed::Skip)];
    let known = async {
        status(&control, "report", |_| true).await;
        status(&control, "mail", |_| true).await;
    };
    app(&broker, &sender, tasks()).run(known).await.expect("it runs");
    broker.clock().advance(Duration::from_hours(5) + Duration::from_mins(1));
    let again = async {
        let run = next(&mut runs).await;
        assert_eq!((run.task(), run.cause()), ("report", RunCause::Due));
        status(&control, "report", |it| runs_of(it) == 1).await;
    };
    app(&broker, &sender, tasks()).run(again).await.expect("it runs");
    assert!(runs.try_recv().is_err(), "no further run");
}

#[tokio::test]
async fn a_run_that_a_crash_interrupted_is_repeated() {
    let broker = broker().await;
    let control = RecurringTasks::new(broker.cluster().await, TASKS);
    let (sender, mut runs) = unbounded_channel();
    let endless = async |run: Run, State(sender): State<UnboundedSender<Run>>| {
        sender.send(run).map_err(|error| error.to_string())?;
        std::future::pending::<Result<(), String>>().await
    };
    let stuck = Recurring::cron("report", "0 * * * *", endless).expect("it is valid");
    let crashing = app(&broker, &sender, vec![stuck]).run(std::future::pending());
    control.trigger("report").await.expect("it is sent");
    tokio::select! {
        ended = crashing => panic!("{ended:?}"),
        run = next(&mut runs) => assert_eq!(run.cause(), RunCause::Triggered),
    }
    // The member is gone without a word; the group notices after the session timeout, so the
    // next process is of another group of the same tasks.
    let next_owner = broker.app("others").state(sender);
    let next_owner = next_owner.recurring(TASKS, [hourly("report")]).expect("the names differ");
    let repeated = async {
        assert_eq!(next(&mut runs).await.cause(), RunCause::Interrupted);
        let status = status(&control, "report", |it| runs_of(it) == 2).await;
        let outcomes: Vec<_> = status.runs.iter().map(|run| run.outcome.clone()).collect();
        assert_eq!(outcomes, [Outcome::Interrupted, Outcome::Succeeded]);
    };
    next_owner.run(repeated).await.expect("it runs");
}

#[tokio::test]
async fn failures_are_part_of_the_history() {
    let broker = broker().await;
    let control = RecurringTasks::new(broker.cluster().await, TASKS);
    control.trigger("report").await.expect("it is sent");
    let failing = async |_: Run| Err::<(), _>("the printer is on fire");
    let task = Recurring::cron("report", "0 * * * *", failing).expect("it is valid");
    let app = broker.app(GROUP).recurring(TASKS, [task]).expect("one name");
    let failed = async {
        let status = status(&control, "report", |it| runs_of(it) == 1).await;
        let outcome = &status.runs.back().expect("a run").outcome;
        assert_eq!(*outcome, Outcome::Failed("the printer is on fire".to_owned()));
    };
    app.run(failed).await.expect("it runs");
}

#[test]
fn tasks_that_cannot_be_are_refused() {
    let cron = |name, cron| Recurring::cron(name, cron, async |_: Run| Ok::<(), String>(()));
    for (name, expression) in [("", "@daily"), ("a:b", "@daily"), ("a", "at noon")] {
        let refused = cron(name, expression).err().expect("it is refused").to_string();
        assert!(refused.starts_with(&format!("recurring task {name}: ")), "{refused}");
    }
    let twice = [0, 1].map(|_| cron("a", "@daily").expect("it is valid"));
    let refused = App::new(["localhost:1"]).recurring(TASKS, twice).err().expect("refused");
    assert_eq!(refused.to_string(), "recurring task a: another task has the same name");
}
