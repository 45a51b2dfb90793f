// franz-go's conformance program; ../README.md describes its interface and scenarios.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	pollTime = 100 * time.Millisecond
	deadline = 40 * time.Second
	// A steady session lasts as long as what happens to the server meanwhile.
	sessionDeadline = 10 * time.Minute
)

type program struct {
	ctx       context.Context
	bootstrap string
	topic     string
	admin     *kadm.Client
	// How connections are secured; nothing where they are not.
	security []kgo.Opt
	checks   int
	failures int
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 1 {
		return session(args[0])
	}
	if len(args) < 3 {
		return errors.New("usage: client BOOTSTRAP SCENARIO TOPIC [CODEC], or client SESSION")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*deadline)
	defer cancel()
	p := &program{ctx: ctx, bootstrap: args[0], topic: args[2]}
	var err error
	if authority := os.Getenv("CONFORMANCE_AUTHORITY"); authority != "" {
		if p.security, err = security([]string{authority, none, none, none, none}); err != nil {
			return err
		}
	}
	client, err := p.client()
	if err != nil {
		return err
	}
	defer client.Close()
	p.admin = kadm.NewClient(client)
	switch args[1] {
	case "produce-consume":
		err = p.produceConsume(args[3])
	case "group":
		err = p.group()
	case "idempotent":
		err = p.idempotent()
	case "admin":
		err = p.administration()
	case "offsets":
		err = p.offsets()
	case "compacted":
		err = p.compacted()
	case "transactions":
		err = p.transactions()
	case "kip-932":
		err = p.shareGroups()
	default:
		err = fmt.Errorf("unknown scenario %s", args[1])
	}
	return p.verdict(err)
}

// session reads from standard input what it is to do.
func session(name string) error {
	sessions := map[string]func(*program) error{
		"secured": (*program).secured,
		"steady":  (*program).steady,
		"tenants": (*program).tenants,
	}
	run, known := sessions[name]
	if !known {
		return fmt.Errorf("unknown session %s", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), sessionDeadline)
	defer cancel()
	p := &program{ctx: ctx}
	return p.verdict(run(p))
}

func (p *program) verdict(err error) error {
	if err == nil && (p.failures > 0 || p.checks == 0) {
		err = fmt.Errorf("%d of %d checks failed", p.failures, p.checks)
	}
	return err
}

func (p *program) client(options ...kgo.Opt) (*kgo.Client, error) {
	options = append([]kgo.Opt{
		kgo.SeedBrokers(strings.Split(p.bootstrap, ",")...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50 * time.Millisecond),
		// A consumer that changes its partitions first waits for the fetch under way.
		kgo.FetchMaxWait(200 * time.Millisecond),
	}, slices.Concat(p.security, options)...)
	return kgo.NewClient(options...)
}

func (p *program) check(name string, ok bool, detail any) {
	line := map[string]any{"check": name, "ok": ok}
	p.checks++
	if !ok {
		p.failures++
		line["detail"] = fmt.Sprint(detail)
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func (p *program) idempotent() error {
	if err := p.createTopic(1); err != nil {
		return err
	}
	for run := range 2 {
		var records []*kgo.Record
		for i := range 500 {
			records = append(records, &kgo.Record{Value: fmt.Append(nil, 500*run+i)})
		}
		// franz-go produces idempotently unless told otherwise; small batches keep five in flight.
		err := p.produce(records, kgo.ProducerBatchMaxBytes(1024), kgo.ProducerLinger(0))
		if err != nil {
			return err
		}
	}
	got, err := p.readFromStart(1000)
	if err != nil {
		return err
	}
	p.check("every record is there once", len(got) == 1000, len(got))
	wrong := slices.IndexFunc(got, func(r *kgo.Record) bool {
		return string(r.Value) != fmt.Sprint(r.Offset)
	})
	p.check("the order is that of sending", wrong < 0, wrong)
	return nil
}

func (p *program) administration() error {
	retention := "7200000"
	settings := map[string]*string{"retention.ms": &retention}
	if _, err := p.admin.CreateTopic(p.ctx, 3, -1, settings, p.topic); err != nil {
		return err
	}
	p.awaitPartitions(3)
	partitions := p.partitions()
	p.check("the topic has three partitions", len(partitions) == 3, partitions)
	led := 0
	for _, partition := range partitions {
		if partition.Leader >= 0 && slices.Contains(partition.ISR, partition.Leader) {
			led++
		}
	}
	p.check("every partition has a leader and itself in sync", led == 3, partitions)
	configs, err := p.admin.DescribeTopicConfigs(p.ctx, p.topic)
	if err != nil {
		return err
	}
	given := slices.ContainsFunc(configs[0].Configs, func(c kadm.Config) bool {
		return c.Key == "retention.ms" && c.MaybeValue() == retention
	})
	p.check("the described config is the one given", given, configs)
	_, err = p.admin.CreateTopic(p.ctx, 3, -1, settings, p.topic)
	p.check("a second creation is refused", errors.Is(err, kerr.TopicAlreadyExists), err)
	added, err := p.admin.UpdatePartitions(p.ctx, 5, p.topic)
	if err = errors.Join(err, added.Error()); err != nil {
		return err
	}
	p.awaitPartitions(5)
	p.check("partitions can be added", len(p.partitions()) == 5, p.partitions())
	cluster, err := p.admin.BrokerMetadata(p.ctx)
	if err != nil {
		return err
	}
	isController := func(it kadm.BrokerDetail) bool { return it.NodeID == cluster.Controller }
	p.check("the cluster names its nodes and controller",
		fmt.Sprint(len(cluster.Brokers)) == cmp.Or(os.Getenv("CONFORMANCE_BROKERS"), "1") &&
			slices.ContainsFunc(cluster.Brokers, isController), cluster)
	if _, err = p.admin.DeleteTopic(p.ctx, p.topic); err != nil {
		return err
	}
	p.awaitPartitions(0)
	p.check("a deleted topic is gone", len(p.partitions()) == 0, p.partitions())
	_, err = p.admin.DeleteTopic(p.ctx, p.topic)
	p.check("an absent topic cannot be deleted", errors.Is(err, kerr.UnknownTopicOrPartition), err)
	return nil
}

func (p *program) offsets() error {
	if err := p.createTopic(1); err != nil {
		return err
	}
	base := time.Now().Add(-time.Hour).UnixMilli()
	var records []*kgo.Record
	for i := range int64(10) {
		stamp := time.UnixMilli(base + 1000*i)
		records = append(records, &kgo.Record{Value: make([]byte, 10), Timestamp: stamp})
	}
	if err := p.produce(records, kgo.ProducerLinger(50*time.Millisecond)); err != nil {
		return err
	}
	start, err := p.admin.ListStartOffsets(p.ctx, p.topic)
	p.checkOffset("earliest is zero", start, err, 0)
	end, err := p.admin.ListEndOffsets(p.ctx, p.topic)
	p.checkOffset("latest is the end", end, err, 10)
	highest, err := p.admin.ListMaxTimestampOffsets(p.ctx, p.topic)
	p.checkOffset("the highest timestamp is the last's", highest, err, 9)
	for _, lookup := range []struct {
		name           string
		stamp, expects int64
	}{
		{"a record's own time finds it", base + 3000, 3},
		{"a time between finds the next", base + 3001, 4},
		{"a time before all finds the first", base - 5000, 0},
		// kadm asks for the end offset where the server knows no record after the time.
		{"a time after all finds none", base + 9001, 10},
	} {
		found, err := p.admin.ListOffsetsAfterMilli(p.ctx, lookup.stamp, p.topic)
		p.checkOffset(lookup.name, found, err, lookup.expects)
	}
	return nil
}

func (p *program) checkOffset(name string, found kadm.ListedOffsets, err error, expects int64) {
	offset, _ := found.Lookup(p.topic, 0)
	p.check(name, err == nil && offset.Err == nil && offset.Offset == expects, offset)
}

func (p *program) createTopic(partitions int32) error {
	_, err := p.admin.CreateTopic(p.ctx, partitions, -1, nil, p.topic)
	p.awaitPartitions(int(partitions))
	return err
}

// partitions is empty where the topic does not exist.
func (p *program) partitions() []kadm.PartitionDetail {
	topics, err := p.admin.ListTopics(p.ctx)
	if err != nil || !topics.Has(p.topic) {
		return nil
	}
	return slices.Collect(maps.Values(topics[p.topic].Partitions))
}

// awaitPartitions waits since a created topic is not yet in every broker's metadata when the
// answer arrives.
func (p *program) awaitPartitions(count int) {
	p.until(func() bool { return len(p.partitions()) == count })
}

func (p *program) until(condition func() bool) {
	p.untilWithin(deadline, condition)
}

func (p *program) untilWithin(most time.Duration, condition func() bool) {
	end := time.Now().Add(most)
	for !condition() && time.Now().Before(end) && p.ctx.Err() == nil {
	}
}

func (p *program) produce(records []*kgo.Record, options ...kgo.Opt) error {
	producer, err := p.client(append(options, kgo.DefaultProduceTopic(p.topic))...)
	if err != nil {
		return err
	}
	defer producer.Close()
	return producer.ProduceSync(p.ctx, records...).FirstErr()
}

func (p *program) readFromStart(wanted int) ([]*kgo.Record, error) {
	from := map[string]map[int32]kgo.Offset{p.topic: {0: kgo.NewOffset().AtStart()}}
	consumer, err := p.client(kgo.ConsumePartitions(from))
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	var got []*kgo.Record
	p.until(func() bool {
		got = append(got, p.poll(consumer)...)
		return len(got) >= wanted
	})
	return append(got, p.poll(consumer)...), nil
}

func (p *program) poll(consumer *kgo.Client) []*kgo.Record {
	ctx, cancel := context.WithTimeout(p.ctx, pollTime)
	defer cancel()
	return consumer.PollFetches(ctx).Records()
}
