package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	lockTime = 30 * time.Second
	// How long nothing may come, where nothing should.
	quietTime = time.Second
)

// shareGroups is the scenario `kip-932`: each part is a group of its own on the same topic.
type shareGroups struct {
	*program
	// How often each value was delivered.
	seen map[string]int
}

// sharer is one member of a share group, and what the broker answered to its acknowledgements.
type sharer struct {
	client  *kgo.Client
	lock    sync.Mutex // guards results, which the client's callback changes
	results kgo.ShareAckResults
}

func (p *program) shareGroups() error {
	if err := p.createTopic(1); err != nil {
		return err
	}
	s := &shareGroups{program: p, seen: map[string]int{}}
	if err := s.produceTo("one"); err != nil {
		return err
	}
	for _, part := range []func() error{
		s.implicit, s.explicit, s.renewed, s.abandoned, s.limited, s.groupOffsets,
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// implicit leaves it to the next poll to accept what the last one returned.
func (s *shareGroups) implicit() error {
	group, err := s.newGroup("implicit")
	if err != nil {
		return err
	}
	var members []*sharer
	for range 3 {
		m, err := s.newSharer(group, kgo.ShareMaxRecords(5))
		if err != nil {
			return err
		}
		members = append(members, m)
	}
	s.read(nil, func() bool { return len(s.seen) == batch }, members...)
	s.check("three members of one partition read every record", len(s.seen) == batch, s.seen)
	s.check("each record is delivered once", s.isOnce(), s.seen)
	if err = s.produceTo("two"); err != nil {
		return err
	}
	s.read(nil, func() bool { return len(s.seen) == 2*batch }, members...)
	s.check("they go on with new records", len(s.seen) == 2*batch && s.isOnce(), s.seen)
	for _, m := range members {
		// A client that closes releases what it did not accept.
		m.client.MarkAcks(kgo.AckAccept)
		if err = s.acknowledged(m); err != nil {
			return err
		}
		m.client.Close()
	}
	later, err := s.newSharer(group)
	if err != nil {
		return err
	}
	defer later.client.Close()
	if err = s.produceTo("three"); err != nil {
		return err
	}
	s.read(nil, func() bool { return len(s.seen) == 3*batch }, later)
	s.check("a later member goes on behind them", len(s.seen) == 3*batch && s.isOnce(), s.seen)
	return nil
}

// explicit releases every fourth record once, and rejects every fourth.
func (s *shareGroups) explicit() error {
	group, err := s.newGroup("explicit")
	if err != nil {
		return err
	}
	m, err := s.newSharer(group)
	if err != nil {
		return err
	}
	defer m.client.Close()
	clear(s.seen)
	wrong := []string{}
	choice := func(r *kgo.Record) kgo.AckStatus {
		if int(r.DeliveryCount()) != s.seen[string(r.Value)] {
			wrong = append(wrong, fmt.Sprint(string(r.Value), " ", r.DeliveryCount()))
		}
		switch {
		case r.Offset%4 == 1 && r.DeliveryCount() < 2:
			return kgo.AckRelease
		case r.Offset%4 == 2:
			return kgo.AckReject
		default:
			return kgo.AckAccept
		}
	}
	all := 3*batch + 3*batch/4
	s.read(choice, func() bool { return s.deliveries() == all }, m)
	s.check("released records come once more, others do not", s.deliveries() == all,
		fmt.Sprintf("%d deliveries of %d", s.deliveries(), len(s.seen)))
	s.check("deliveries are counted", len(wrong) == 0, wrong)
	s.readWithin(quietTime, choice, func() bool { return false }, m)
	s.check("nothing comes again", s.deliveries() == all, s.deliveries())
	err = s.acknowledged(m)
	s.check("every acknowledgement is taken", err == nil, err)
	return nil
}

func (s *shareGroups) renewed() error {
	group, err := s.newGroup("renewed")
	if err != nil {
		return err
	}
	m, err := s.newSharer(group)
	if err != nil {
		return err
	}
	defer m.client.Close()
	held := s.hold(m, 1)
	if len(held) == 0 {
		return errors.New("no record to renew")
	}
	left := time.Until(held[0].AcquisitionDeadline())
	s.check("the lock's time is known", left > 0 && left <= lockTime, left)
	m.client.MarkAcks(kgo.AckRenew, held...)
	err = s.acknowledged(m)
	s.check("a lock is renewed", err == nil, err)
	m.client.MarkAcks(kgo.AckAccept, held...)
	err = s.acknowledged(m)
	s.check("what was renewed is accepted", err == nil, err)
	return nil
}

func (s *shareGroups) abandoned() error {
	group, err := s.newGroup("abandoned")
	if err != nil {
		return err
	}
	first, err := s.newSharer(group)
	if err != nil {
		return err
	}
	held := s.hold(first, 1)
	first.client.Close()
	second, err := s.newSharer(group)
	if err != nil {
		return err
	}
	defer second.client.Close()
	again := s.hold(second, 3*batch)
	delivered := map[int64]int32{}
	for _, record := range again {
		delivered[record.Offset] = record.DeliveryCount()
	}
	missing := 0
	for _, record := range held {
		if delivered[record.Offset] != 2 {
			missing++
		}
	}
	s.check("what a member left behind comes to another", len(held) > 0 && missing == 0,
		fmt.Sprintf("%d of %d did not", missing, len(held)))
	return nil
}

func (s *shareGroups) limited() error {
	group, err := s.newGroup("limited")
	if err != nil {
		return err
	}
	m, err := s.newSharer(group, kgo.ShareMaxRecords(7), kgo.ShareMaxRecordsStrict())
	if err != nil {
		return err
	}
	defer m.client.Close()
	got := s.hold(m, 1)
	s.check("a limit of records is kept", len(got) > 0 && len(got) <= 7, len(got))
	return nil
}

func (s *shareGroups) groupOffsets() error {
	group, err := s.newGroup("offsets")
	if err != nil {
		return err
	}
	if err = s.readAll(group, 3*batch); err != nil {
		return err
	}
	// The start may stay before records that are accepted; the lag does not count them.
	end, err := s.startOffset(group)
	s.check("the group's offset is listed", err == nil && end.Lag == 0, fmt.Sprint(end, err))
	altered := kadm.Offsets{}
	altered.AddOffset(s.topic, 0, 2*batch, -1)
	answer, err := s.admin.AlterShareGroupOffsets(s.ctx, group, altered)
	if err = errors.Join(err, answer.Error()); err != nil {
		return err
	}
	start, err := s.startOffset(group)
	s.check("the group's offset is altered", err == nil && start.StartOffset == 2*batch,
		fmt.Sprint(start, err))
	if err = s.readAll(group, batch); err != nil {
		return err
	}
	s.check("it reads from there", len(s.seen) == batch && s.isOnce(), s.seen)
	deleted, err := s.admin.DeleteShareGroupOffsets(s.ctx, group, s.topic)
	if err = errors.Join(err, deleted.Error()); err != nil {
		return err
	}
	if _, err = s.admin.DeleteGroup(s.ctx, group); err != nil {
		return err
	}
	listed, err := s.admin.ListGroupsByType(s.ctx, []string{"share"})
	_, present := listed[group]
	s.check("the group is deleted", err == nil && !present, fmt.Sprint(listed.Groups(), err))
	return nil
}

// readAll has one member read and accept so many records; the group is described meanwhile.
func (s *shareGroups) readAll(group string, wanted int) error {
	m, err := s.newSharer(group)
	if err != nil {
		return err
	}
	defer m.client.Close()
	clear(s.seen)
	accept := func(*kgo.Record) kgo.AckStatus { return kgo.AckAccept }
	s.read(accept, func() bool { return len(s.seen) >= wanted }, m)
	if err = s.acknowledged(m); err != nil {
		return err
	}
	described, err := s.admin.DescribeShareGroups(s.ctx, group)
	found := described[group]
	s.check("the group is described",
		err == nil && found.GroupState == "Stable" && len(found.Members) == 1,
		fmt.Sprint(found, err))
	return nil
}

func (s *shareGroups) startOffset(group string) (kadm.ShareOffset, error) {
	described, err := s.admin.DescribeShareGroupOffsets(s.ctx, group)
	if err = errors.Join(err, described.Error()); err != nil {
		return kadm.ShareOffset{}, err
	}
	offset, _ := described[group].Offsets.Lookup(s.topic, 0)
	return offset, offset.Err
}

// newGroup names a group that reads from the first record on.
func (s *shareGroups) newGroup(name string) (string, error) {
	group, first := s.topic+"-"+name, "earliest"
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "share.auto.offset.reset", &first
	config.Op = kmsg.IncrementalAlterConfigOpSet
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType = kmsg.ConfigResourceTypeGroupConfig
	resource.ResourceName = group
	resource.Configs = append(resource.Configs, config)
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Resources = append(request.Resources, resource)
	client, err := s.client()
	if err != nil {
		return "", err
	}
	defer client.Close()
	answer, err := request.RequestWith(s.ctx, client)
	if err != nil {
		return "", err
	}
	for _, resource := range answer.Resources {
		err = errors.Join(err, kerr.ErrorForCode(resource.ErrorCode))
	}
	return group, err
}

func (s *shareGroups) newSharer(group string, options ...kgo.Opt) (*sharer, error) {
	m := &sharer{}
	taken := func(_ *kgo.Client, results kgo.ShareAckResults) {
		m.lock.Lock()
		defer m.lock.Unlock()
		m.results = append(m.results, results...)
	}
	var err error
	m.client, err = s.client(append(options, kgo.ShareGroup(group), kgo.ConsumeTopics(s.topic),
		kgo.ShareAckCallback(taken))...)
	return m, err
}

// acknowledged sends what the member has marked, and returns what the broker did not take since
// the last call.
func (s *shareGroups) acknowledged(m *sharer) error {
	if err := m.client.FlushAcks(s.ctx); err != nil {
		return err
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	results := m.results
	m.results = nil
	return results.Error()
}

func (s *shareGroups) produceTo(name string) error {
	var records []*kgo.Record
	for i := range batch {
		records = append(records, &kgo.Record{Value: fmt.Appendf(nil, "%s-%d", name, i)})
	}
	return s.produce(records)
}

// hold polls until it has so many records, and acknowledges none of them.
func (s *shareGroups) hold(m *sharer, least int) []*kgo.Record {
	var held []*kgo.Record
	s.until(func() bool {
		held = append(held, s.poll(m.client)...)
		return len(held) >= least
	})
	return held
}

func (s *shareGroups) read(
	choice func(*kgo.Record) kgo.AckStatus, condition func() bool, members ...*sharer,
) {
	s.readWithin(deadline, choice, condition, members...)
}

// readWithin lets the members read until the condition holds.
func (s *shareGroups) readWithin(
	most time.Duration, choice func(*kgo.Record) kgo.AckStatus, condition func() bool,
	members ...*sharer,
) {
	s.untilWithin(most, func() bool {
		for _, m := range members {
			for _, record := range s.poll(m.client) {
				s.seen[string(record.Value)]++
				if choice != nil {
					record.Ack(choice(record))
				}
			}
		}
		return condition()
	})
}

func (s *shareGroups) isOnce() bool {
	for _, count := range s.seen {
		if count != 1 {
			return false
		}
	}
	return true
}

func (s *shareGroups) deliveries() int {
	sum := 0
	for _, count := range s.seen {
		sum += count
	}
	return sum
}
