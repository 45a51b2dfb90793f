package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	tenantsTopic    = "orders"
	transactionalID = "payments"
	tenantRecords   = 50
)

// tenant is one of several with the same names, and its clients.
type tenant struct {
	name     string
	ctx      context.Context
	security []kgo.Opt
	// The tenant's topics with their numbers of partitions.
	topics   map[string]int
	admin    *kadm.Client
	producer *kgo.Client
	member   *kgo.Client
	read     []string
}

func groupName(protocol string) string { return protocol + "-workers" }

// tenants work at the same time, each as a line of standard input says.
func (p *program) tenants() error {
	var all []*tenant
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 7 {
			return fmt.Errorf("not a line of seven fields: %s", lines.Text())
		}
		t, err := newTenant(p.ctx, fields[0], len(all)+2, fields[1:])
		if err != nil {
			return err
		}
		all = append(all, t)
	}
	for _, t := range all {
		if err := t.createTopics(p); err != nil {
			return err
		}
	}
	each(p, all, "the topics listed are the tenant's, each with its partitions",
		func(t *tenant) (any, any) { return t.listedTopics(), t.topics })
	if err := p.tenantsTransactions(all); err != nil {
		return err
	}
	for _, protocol := range []string{"classic", "consumer"} {
		if err := p.tenantsGroup(all, protocol); err != nil {
			return err
		}
	}
	each(p, all, "the groups listed are the tenant's", func(t *tenant) (any, any) {
		listed, err := t.admin.ListGroups(p.ctx)
		wanted := []string{groupName("classic"), groupName("consumer")}
		return fmt.Sprint(listed.Groups(), err), fmt.Sprint(wanted, nil)
	})
	return lines.Err()
}

// tenantsTransactions are of one transactional id and open in all tenants at once.
func (p *program) tenantsTransactions(all []*tenant) error {
	for _, t := range all {
		if err := t.transact("committed"); err != nil {
			return err
		}
	}
	each(p, all, "the transaction listed is the tenant's own, of its topics",
		func(t *tenant) (any, any) {
			listed, err := t.admin.ListTransactions(p.ctx, nil, nil)
			described, failed := t.admin.DescribeTransactions(p.ctx, transactionalID)
			topics := described[transactionalID].Topics.Topics()
			slices.Sort(topics)
			found := fmt.Sprint(listed.TransactionalIDs(), err, topics, failed)
			own := slices.Sorted(maps.Keys(t.topics))
			return found, fmt.Sprint([]string{transactionalID}, nil, own, nil)
		})
	for _, kind := range []string{"aborted", ""} {
		for _, t := range all {
			commit := kgo.TransactionEndTry(kind == "aborted")
			if err := t.producer.EndTransaction(p.ctx, commit); err != nil {
				return err
			}
			if kind == "" {
				continue
			}
			if err := t.transact(kind); err != nil {
				return err
			}
		}
	}
	p.check("no tenant's transaction is fenced by another's", true, nil)
	return nil
}

// tenantsGroup is of one name and subscribes by expression.
func (p *program) tenantsGroup(all []*tenant, protocol string) error {
	for _, t := range all {
		if err := t.join(protocol); err != nil {
			return err
		}
		defer t.member.Close()
	}
	complete := func() bool {
		for _, t := range all {
			for _, record := range p.poll(t.member) {
				t.read = append(t.read, string(record.Value))
			}
		}
		return !slices.ContainsFunc(all, func(t *tenant) bool {
			return len(t.read) < len(t.expected())
		})
	}
	p.until(complete)
	complete()
	each(p, all, fmt.Sprintf("a %s group by expression reads the tenant's records alone", protocol),
		func(t *tenant) (any, any) { return slices.Sorted(slices.Values(t.read)), t.expected() })
	each(p, all, fmt.Sprintf("offsets of a %s group are the tenant's", protocol),
		func(t *tenant) (any, any) {
			err := t.member.CommitUncommittedOffsets(p.ctx)
			committed, failed := t.admin.FetchOffsets(p.ctx, groupName(protocol))
			partitions := map[string]int{}
			for topic, offsets := range committed {
				partitions[topic] = len(offsets)
			}
			return fmt.Sprint(err, failed, partitions), fmt.Sprint(nil, nil, t.topics)
		})
	return nil
}

func newTenant(
	ctx context.Context, name string, partitions int, connection []string,
) (*tenant, error) {
	options, err := security(connection[1:])
	if err != nil {
		return nil, err
	}
	t := &tenant{name: name, ctx: ctx, security: append(options, kgo.SeedBrokers(connection[0]))}
	t.topics = map[string]int{tenantsTopic: partitions, tenantsTopic + "-" + name: 1}
	client, err := kgo.NewClient(t.security...)
	if err != nil {
		return nil, err
	}
	t.admin = kadm.NewClient(client)
	t.producer, err = kgo.NewClient(append(t.security,
		kgo.TransactionalID(transactionalID), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	return t, err
}

func (t *tenant) createTopics(p *program) error {
	for topic, partitions := range t.topics {
		if _, err := t.admin.CreateTopic(t.ctx, int32(partitions), -1, nil, topic); err != nil {
			return err
		}
	}
	p.until(func() bool { return maps.Equal(t.listedTopics(), t.topics) })
	return nil
}

func (t *tenant) listedTopics() map[string]int {
	listed, err := t.admin.ListTopicsWithInternal(t.ctx)
	if err != nil {
		return nil
	}
	topics := map[string]int{}
	for name, topic := range listed {
		topics[name] = len(topic.Partitions)
	}
	return topics
}

// transact begins a transaction and sends records to every partition.
func (t *tenant) transact(kind string) error {
	if err := t.producer.BeginTransaction(); err != nil {
		return err
	}
	return t.producer.ProduceSync(t.ctx, t.records(kind)...).FirstErr()
}

func (t *tenant) records(kind string) []*kgo.Record {
	var records []*kgo.Record
	for topic, partitions := range t.topics {
		for partition := range partitions {
			for i := range tenantRecords {
				value := fmt.Appendf(nil, "%s %s %s %d %d", t.name, kind, topic, partition, i)
				records = append(records,
					&kgo.Record{Topic: topic, Partition: int32(partition), Value: value})
			}
		}
	}
	return records
}

func (t *tenant) expected() []string {
	var values []string
	for _, record := range t.records("committed") {
		values = append(values, string(record.Value))
	}
	slices.Sort(values)
	return values
}

func (t *tenant) join(protocol string) error {
	options := append(t.security,
		kgo.ConsumerGroup(groupName(protocol)), kgo.DisableAutoCommit(),
		kgo.ConsumeRegex(), kgo.ConsumeTopics("^"+tenantsTopic+".*"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	t.read = nil
	var err error
	t.member, err = kgo.NewClient(options...)
	return err
}

func each(p *program, all []*tenant, name string, foundAndWanted func(*tenant) (any, any)) {
	for _, t := range all {
		found, wanted := foundAndWanted(t)
		f, w := fmt.Sprint(found), fmt.Sprint(wanted)
		p.check(name, f == w, fmt.Sprintf("%s: %s, not %s", t.name, f, w))
	}
}
