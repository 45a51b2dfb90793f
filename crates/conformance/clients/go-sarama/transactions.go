package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/IBM/sarama"
)

const transactionRecords = 40

// transactions is the scenario of that name; ../README.md says what it contains.
func (p *program) transactions() error {
	if err := p.createTopic(2); err != nil {
		return err
	}
	return errors.Join(p.endsAndReads(), p.transactionalOffsets(), p.fencing())
}

func (p *program) endsAndReads() error {
	producer, err := p.transactional()
	if err != nil {
		return err
	}
	defer producer.Close()
	var committed []string
	for i := range 6 {
		values, err := p.write(producer, fmt.Sprint("t", i))
		if err != nil {
			return err
		}
		end := producer.CommitTxn
		if i%3 == 1 {
			end = producer.AbortTxn
		} else {
			committed = append(committed, values...)
		}
		if err = end(); err != nil {
			return err
		}
	}
	if _, err = p.write(producer, "open"); err != nil {
		return err
	}
	slices.Sort(committed)
	read, err := p.readAll(sarama.ReadCommitted, len(committed))
	if err != nil {
		return err
	}
	p.check("committed records are read, and no others", slices.Equal(read, committed), read)
	all, err := p.readAll(sarama.ReadUncommitted, 7*transactionRecords)
	if err != nil {
		return err
	}
	p.check("all records are read by who reads uncommitted ones",
		len(all) == 7*transactionRecords, len(all))
	if err = producer.AbortTxn(); err != nil {
		return err
	}
	read, err = p.readAll(sarama.ReadCommitted, len(committed))
	if err != nil {
		return err
	}
	p.check("nothing that was aborted is read in the end", slices.Equal(read, committed), read)
	return nil
}

func (p *program) transactionalOffsets() error {
	producer, err := p.transactional()
	if err != nil {
		return err
	}
	defer producer.Close()
	offsets := map[string][]*sarama.PartitionOffsetMetadata{
		p.topic: {{Partition: 0, Offset: 10}, {Partition: 1, Offset: 11}},
	}
	for _, commits := range []bool{false, true} {
		if err = producer.BeginTxn(); err != nil {
			return err
		}
		if err = producer.AddOffsetsToTxn(offsets, p.topic); err != nil {
			return err
		}
		name, wanted, end := "an abort commits no offsets", []int64{-1, -1}, producer.AbortTxn
		if commits {
			name, wanted = "offsets are those of the commit", []int64{10, 11}
			end = producer.CommitTxn
		}
		if err = end(); err != nil {
			return err
		}
		asked := map[string][]int32{p.topic: {0, 1}}
		answer, err := p.admin.ListConsumerGroupOffsets(p.topic, asked)
		if err != nil {
			return err
		}
		var found []int64
		for _, partition := range asked[p.topic] {
			found = append(found, answer.GetBlock(p.topic, partition).Offset)
		}
		p.check(name, slices.Equal(found, wanted), found)
	}
	return nil
}

func (p *program) fencing() error {
	first, err := p.transactional()
	if err != nil {
		return err
	}
	defer first.Close()
	if _, err = p.write(first, "fenced"); err != nil {
		return err
	}
	second, err := p.transactional()
	if err != nil {
		return err
	}
	defer second.Close()
	err = first.CommitTxn()
	fenced := errors.Is(err, sarama.ErrProducerFenced) ||
		errors.Is(err, sarama.ErrInvalidProducerEpoch)
	p.check("a producer that was fenced cannot commit", fenced, err)
	if _, err = p.write(second, "second"); err != nil {
		return err
	}
	if err = second.CommitTxn(); err != nil {
		return err
	}
	read, err := p.readAll(sarama.ReadCommitted, 5*transactionRecords)
	if err != nil {
		return err
	}
	count := func(name string) (count int) {
		for _, value := range read {
			if strings.HasPrefix(value, name) {
				count++
			}
		}
		return count
	}
	p.check("records of fenced producers are not read",
		count("second") == transactionRecords && count("fenced") == 0, read)
	return nil
}

func (p *program) transactional() (sarama.SyncProducer, error) {
	config := p.config()
	config.Producer.Idempotent = true
	config.Producer.Transaction.ID = p.topic
	config.Net.MaxOpenRequests = 1
	return sarama.NewSyncProducer(p.bootstrap, config)
}

// write begins a transaction and waits until its records are acknowledged.
func (p *program) write(producer sarama.SyncProducer, name string) ([]string, error) {
	if err := producer.BeginTxn(); err != nil {
		return nil, err
	}
	var values []string
	var messages []*sarama.ProducerMessage
	for i := range transactionRecords {
		values = append(values, fmt.Sprint(name, "-", i))
		messages = append(messages, p.message(int32(i%2), values[i]))
	}
	return values, producer.SendMessages(messages)
}

// readAll reads both partitions, half of the wanted values each; sorted.
func (p *program) readAll(isolation sarama.IsolationLevel, wanted int) ([]string, error) {
	var values []string
	for partition := range int32(2) {
		messages, err := p.read(partition, isolation, wanted/2)
		if err != nil {
			return nil, err
		}
		for _, message := range messages {
			values = append(values, string(message.Value))
		}
	}
	slices.Sort(values)
	return values, nil
}
