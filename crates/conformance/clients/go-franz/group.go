package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const batch = 80

// member is one group member and the partitions that it owns.
type member struct {
	client *kgo.Client
	lock   sync.Mutex // guards owned, which the client's callbacks change
	owned  map[int32]bool
}

func (p *program) newMember() (*member, error) {
	m := &member{owned: map[int32]bool{}}
	set := func(owned bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			m.lock.Lock()
			defer m.lock.Unlock()
			for _, partition := range changed[p.topic] {
				if owned {
					m.owned[partition] = true
				} else {
					delete(m.owned, partition)
				}
			}
		}
	}
	var err error
	m.client, err = p.client(
		kgo.ConsumerGroup(p.topic), kgo.ConsumeTopics(p.topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.OnPartitionsAssigned(set(true)), kgo.OnPartitionsRevoked(set(false)),
		kgo.OnPartitionsLost(set(false)))
	return m, err
}

func (m *member) partitions() []int32 {
	m.lock.Lock()
	defer m.lock.Unlock()
	return slices.Sorted(maps.Keys(m.owned))
}

func share(first, second *member) bool {
	a, b := first.partitions(), second.partitions()
	all := slices.Sorted(slices.Values(slices.Concat(a, b)))
	return len(a) > 0 && len(b) > 0 && slices.Equal(all, []int32{0, 1, 2, 3})
}

func (p *program) group() error {
	if err := p.createTopic(4); err != nil {
		return err
	}
	first, err := p.newMember()
	if err != nil {
		return err
	}
	second, err := p.newMember()
	if err != nil {
		return err
	}
	seen := map[string]int{}
	p.until(func() bool { p.collect(seen, first, second); return share(first, second) })
	p.check("two members share all partitions", share(first, second),
		fmt.Sprint(first.partitions(), second.partitions()))

	if err = p.produceBatch("one"); err != nil {
		return err
	}
	p.readBatch(seen, batch, first, second)
	p.check("two members read every record once", maps.Equal(seen, expected("one")), seen)
	described, err := p.admin.DescribeGroups(p.ctx, p.topic)
	group := described[p.topic]
	p.check("the described group is stable with two members",
		err == nil && group.State == "Stable" && len(group.Members) == 2, group)
	for _, m := range []*member{first, second} {
		if err = m.client.CommitUncommittedOffsets(p.ctx); err != nil {
			return err
		}
	}
	second.client.Close()

	if err = p.produceBatch("two"); err != nil {
		return err
	}
	p.readBatch(seen, 2*batch, first)
	p.check("the rest goes to the member that stays", len(first.partitions()) == 4,
		first.partitions())
	p.check("nothing is lost or repeated after one leaves",
		maps.Equal(seen, expected("one", "two")), seen)
	if err = first.client.CommitUncommittedOffsets(p.ctx); err != nil {
		return err
	}
	first.client.Close()
	return p.resume()
}

// resume joins a member to the group that all others have left.
func (p *program) resume() error {
	if err := p.produceBatch("three"); err != nil {
		return err
	}
	third, err := p.newMember()
	if err != nil {
		return err
	}
	resumed := map[string]int{}
	p.readBatch(resumed, batch, third)
	p.check("a later member resumes from the commit", maps.Equal(resumed, expected("three")),
		resumed)
	if err = third.client.CommitUncommittedOffsets(p.ctx); err != nil {
		return err
	}
	third.client.Close()
	committed, err := p.admin.FetchOffsets(p.ctx, p.topic)
	if err != nil {
		return err
	}
	sum := int64(0)
	for _, offset := range committed[p.topic] {
		sum += offset.At
	}
	p.check("the committed offsets cover every record", sum == 3*batch, sum)
	return nil
}

func (p *program) produceBatch(name string) error {
	var records []*kgo.Record
	for i := range int32(batch) {
		value := fmt.Appendf(nil, "%s-%d", name, i)
		records = append(records, &kgo.Record{Partition: i % 4, Value: value})
	}
	return p.produce(records)
}

func (p *program) collect(seen map[string]int, members ...*member) {
	for _, m := range members {
		for _, record := range p.poll(m.client) {
			seen[string(record.Value)]++
		}
	}
}

// readBatch polls until it saw `wanted` different records, then once more for what should not come.
func (p *program) readBatch(seen map[string]int, wanted int, members ...*member) {
	p.until(func() bool { p.collect(seen, members...); return len(seen) >= wanted })
	p.collect(seen, members...)
}

func expected(batches ...string) map[string]int {
	all := map[string]int{}
	for _, name := range batches {
		for i := range batch {
			all[fmt.Sprintf("%s-%d", name, i)] = 1
		}
	}
	return all
}
