package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

const batch = 80

// member is one group member: its partitions, and all that it and others read.
type member struct {
	group sarama.ConsumerGroup
	stop  context.CancelFunc
	ended chan error
	seen  *values
	lock  sync.Mutex // guards session
	// The generation that it takes part in; nil between two of them.
	session sarama.ConsumerGroupSession
}

// values counts what members read.
type values struct {
	lock   sync.Mutex // guards counts
	counts map[string]int
}

func (v *values) add(value []byte) {
	v.lock.Lock()
	defer v.lock.Unlock()
	v.counts[string(value)]++
}

func (v *values) copy() map[string]int {
	v.lock.Lock()
	defer v.lock.Unlock()
	return maps.Clone(v.counts)
}

func (p *program) newMember(seen *values) (*member, error) {
	config := p.config()
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	group, err := sarama.NewConsumerGroup(p.bootstrap, p.topic, config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &member{group: group, stop: stop, ended: make(chan error, 1), seen: seen}
	go func() {
		for ctx.Err() == nil {
			if err := group.Consume(ctx, []string{p.topic}, m); err != nil {
				m.ended <- err
				return
			}
		}
		m.ended <- nil
	}()
	return m, nil
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.enter(session)
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.enter(nil)
	return nil
}

func (m *member) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for message := range claim.Messages() {
		m.seen.add(message.Value)
		session.MarkMessage(message, "")
	}
	return nil
}

func (m *member) enter(session sarama.ConsumerGroupSession) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session = session
}

func (m *member) commit() {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.session != nil {
		m.session.Commit()
	}
}

func (m *member) partitions() []int32 {
	m.lock.Lock()
	defer m.lock.Unlock()
	var all []int32
	if m.session != nil {
		for _, partitions := range m.session.Claims() {
			all = append(all, partitions...)
		}
	}
	return all
}

// leave commits, then leaves the group.
func (m *member) leave() error {
	m.commit()
	m.stop()
	if err := <-m.ended; err != nil {
		return err
	}
	return m.group.Close()
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
	seen := &values{counts: map[string]int{}}
	first, err := p.newMember(seen)
	if err != nil {
		return err
	}
	second, err := p.newMember(seen)
	if err != nil {
		return err
	}
	until(func() bool { return share(first, second) })
	p.check("two members share all partitions", share(first, second),
		fmt.Sprint(first.partitions(), second.partitions()))

	if err = p.produceBatch("one"); err != nil {
		return err
	}
	seen.await(batch)
	p.check("two members read every record once", maps.Equal(seen.copy(), expected("one")),
		seen.copy())
	described, err := p.admin.DescribeConsumerGroups([]string{p.topic})
	p.check("the described group is stable with two members",
		err == nil && described[0].State == "Stable" && len(described[0].Members) == 2, described)
	first.commit()
	if err = second.leave(); err != nil {
		return err
	}

	// Sarama goes back to the committed offsets at every rebalance, so that one comes first.
	until(func() bool { return len(first.partitions()) == 4 })
	p.check("the rest goes to the member that stays", len(first.partitions()) == 4,
		first.partitions())
	if err = p.produceBatch("two"); err != nil {
		return err
	}
	seen.await(2 * batch)
	p.check("nothing is lost or repeated after one leaves",
		maps.Equal(seen.copy(), expected("one", "two")), seen.copy())
	if err = first.leave(); err != nil {
		return err
	}
	return p.resume()
}

// resume joins a member to the group that all others have left.
func (p *program) resume() error {
	if err := p.produceBatch("three"); err != nil {
		return err
	}
	resumed := &values{counts: map[string]int{}}
	third, err := p.newMember(resumed)
	if err != nil {
		return err
	}
	resumed.await(batch)
	p.check("a later member resumes from the commit",
		maps.Equal(resumed.copy(), expected("three")), resumed.copy())
	if err = third.leave(); err != nil {
		return err
	}
	committed, err := p.admin.ListConsumerGroupOffsets(p.topic, nil)
	if err != nil {
		return err
	}
	sum := int64(0)
	for _, block := range committed.Blocks[p.topic] {
		sum += block.Offset
	}
	p.check("the committed offsets cover every record", sum == 3*batch, sum)
	return nil
}

func (p *program) produceBatch(name string) error {
	var messages []*sarama.ProducerMessage
	for i := range int32(batch) {
		messages = append(messages, p.message(i%4, fmt.Sprintf("%s-%d", name, i)))
	}
	return p.produce(p.config(), messages)
}

// await waits for so many different values, then for what should not come.
func (v *values) await(wanted int) {
	until(func() bool { return len(v.copy()) >= wanted })
	time.Sleep(300 * time.Millisecond)
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
