package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const transactionRecords = 40

// transactions is the scenario of that name; ../README.md says what it contains.
func (p *program) transactions() error {
	if err := p.createTopic(2); err != nil {
		return err
	}
	if err := p.endsAndReads(); err != nil {
		return err
	}
	return p.fencing()
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
		end := kgo.TryCommit
		if i%3 == 1 {
			end = kgo.TryAbort
		} else {
			committed = append(committed, values...)
		}
		if err = producer.EndTransaction(p.ctx, end); err != nil {
			return err
		}
	}
	if _, err = p.write(producer, "open"); err != nil {
		return err
	}
	slices.Sort(committed)
	read, err := p.readAll(kgo.ReadCommitted(), len(committed))
	if err != nil {
		return err
	}
	p.check("committed records are read, and no others", slices.Equal(read, committed), read)
	all, err := p.readAll(kgo.ReadUncommitted(), 7*transactionRecords)
	if err != nil {
		return err
	}
	p.check("all records are read by who reads uncommitted ones",
		len(all) == 7*transactionRecords, len(all))
	if err = producer.EndTransaction(p.ctx, kgo.TryAbort); err != nil {
		return err
	}
	read, err = p.readAll(kgo.ReadCommitted(), len(committed))
	if err != nil {
		return err
	}
	p.check("nothing that was aborted is read in the end", slices.Equal(read, committed), read)
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
	if _, err = p.write(second, "second"); err != nil {
		return err
	}
	if err = second.EndTransaction(p.ctx, kgo.TryCommit); err != nil {
		return err
	}
	err = first.EndTransaction(p.ctx, kgo.TryCommit)
	fenced := errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch)
	p.check("a producer that was fenced cannot commit", fenced, err)
	read, err := p.readAll(kgo.ReadCommitted(), 5*transactionRecords)
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

func (p *program) transactional() (*kgo.Client, error) {
	return p.client(kgo.TransactionalID(p.topic), kgo.DefaultProduceTopic(p.topic))
}

// write begins a transaction and waits until its records are acknowledged.
func (p *program) write(producer *kgo.Client, name string) ([]string, error) {
	if err := producer.BeginTransaction(); err != nil {
		return nil, err
	}
	var values []string
	var records []*kgo.Record
	for i := range transactionRecords {
		values = append(values, fmt.Sprint(name, "-", i))
		records = append(records, &kgo.Record{Partition: int32(i % 2), Value: []byte(values[i])})
	}
	return values, producer.ProduceSync(p.ctx, records...).FirstErr()
}

// readAll reads both partitions until so many values came, and once more; sorted.
func (p *program) readAll(isolation kgo.IsolationLevel, wanted int) ([]string, error) {
	start := kgo.NewOffset().At(0)
	client, err := p.client(
		kgo.FetchIsolationLevel(isolation),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{p.topic: {0: start, 1: start}}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var values []string
	poll := func() {
		for _, record := range p.poll(client) {
			values = append(values, string(record.Value))
		}
	}
	p.until(func() bool { poll(); return len(values) >= wanted })
	poll()
	slices.Sort(values)
	return values, nil
}
