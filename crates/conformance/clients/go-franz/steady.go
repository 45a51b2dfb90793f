package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	steadyPartitions = 3
	steadyValueBytes = 1000
	// How often records that are due are sent, and progress is told.
	steadyPause = 10 * time.Millisecond
	// Records that wait for their acknowledgement where no rate is given.
	steadyBuffered = 5000
)

// steady is the state of one session; connections and answers come on threads of the library.
type steady struct {
	topic      string
	rate       int
	stop       string
	acked      atomic.Int64
	read       atomic.Int64
	generation atomic.Value
	// Connections that were made, and errors that the library told of.
	connections atomic.Int64
	lock        sync.Mutex // guards errors and latencies
	errors      []string
	latencies   []time.Duration
}

func (s *steady) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	s.connections.Add(1)
	s.fault("connecting", err)
}

func (s *steady) fault(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.errors = append(s.errors, fmt.Sprint(what, ": ", err))
	}
}

// steady writes at a rate and reads it until a file is there.
func (p *program) steady() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Scan()
	fields := strings.Split(lines.Text(), "\t")
	if len(fields) != 9 {
		return fmt.Errorf("not a line of nine fields: %s", lines.Text())
	}
	s := &steady{topic: fields[0], stop: fields[2]}
	s.generation.Store(none)
	var err error
	if s.rate, err = strconv.Atoi(fields[1]); err != nil {
		return err
	}
	options, err := security(fields[4:])
	if err != nil {
		return err
	}
	options = append(options, kgo.SeedBrokers(fields[3]), kgo.WithHooks(s))
	sent, err := p.flow(s, options)
	if err != nil {
		return err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	p.check("every send is acknowledged", s.acked.Load() == sent, []int64{s.acked.Load(), sent})
	p.check("every record is read once and in order", s.read.Load() == sent,
		[]int64{s.read.Load(), sent})
	p.check("no error is reported", len(s.errors) == 0, s.errors)
	slices.Sort(s.latencies)
	quantile := func(q float64) int64 {
		if len(s.latencies) == 0 {
			return 0
		}
		return s.latencies[int(q*float64(len(s.latencies)-1))].Microseconds()
	}
	fmt.Fprintf(os.Stderr, "latency_us %d %d\n", quantile(0.5), quantile(0.99))
	return nil
}

// flow gives how many records were sent.
func (p *program) flow(s *steady, options []kgo.Opt) (int64, error) {
	producer, err := kgo.NewClient(append(options, kgo.DefaultProduceTopic(s.topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.MaxBufferedRecords(steadyBuffered))...)
	if err != nil {
		return 0, err
	}
	defer producer.Close()
	admin := kadm.NewClient(producer)
	if _, err = admin.CreateTopic(p.ctx, steadyPartitions, -1, nil, s.topic); err != nil {
		return 0, err
	}
	consumer, err := kgo.NewClient(append(options, kgo.ConsumerGroup(s.topic),
		kgo.ConsumeTopics(s.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		return 0, err
	}
	defer consumer.Close()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	go s.consume(ctx, consumer)
	sent := s.produce(p.ctx, producer)
	s.fault("flush", producer.Flush(p.ctx))
	p.until(func() bool { time.Sleep(steadyPause); return s.read.Load() >= sent })
	return sent, nil
}

func (s *steady) produce(ctx context.Context, producer *kgo.Client) int64 {
	sent, begin := int64(0), time.Now()
	padding := strings.Repeat("x", steadyValueBytes)
	for {
		if _, err := os.Stat(s.stop); err == nil || ctx.Err() != nil {
			return sent
		}
		due := int64(time.Since(begin).Seconds() * float64(s.rate))
		if s.rate == 0 {
			due = sent + steadyBuffered
		}
		for ; sent < due; sent++ {
			value := fmt.Appendf(nil, "%d %s", sent, padding)
			record := &kgo.Record{Partition: int32(sent % steadyPartitions), Value: value}
			at := time.Now()
			producer.Produce(ctx, record, func(_ *kgo.Record, err error) {
				s.fault("a send", err)
				if err == nil {
					s.acked.Add(1)
				}
				s.lock.Lock()
				defer s.lock.Unlock()
				s.latencies = append(s.latencies, time.Since(at))
			})
		}
		fmt.Fprintf(os.Stderr, "progress %d %d %s %d\n",
			s.acked.Load(), s.read.Load(), s.generation.Load(), s.connections.Load())
		time.Sleep(steadyPause)
	}
}

func (s *steady) consume(ctx context.Context, consumer *kgo.Client) {
	var next [steadyPartitions]int64
	for partition := range next {
		next[partition] = int64(partition)
	}
	for ctx.Err() == nil {
		fetches := consumer.PollFetches(ctx)
		fetches.EachError(func(_ string, _ int32, err error) { s.fault("a fetch", err) })
		fetches.EachRecord(func(record *kgo.Record) {
			text, _, _ := strings.Cut(string(record.Value), " ")
			if text != fmt.Sprint(next[record.Partition]) {
				s.fault("a read", fmt.Errorf("%s, not %d", text, next[record.Partition]))
			}
			next[record.Partition] += steadyPartitions
			s.read.Add(1)
			for _, header := range record.Headers {
				s.generation.Store(string(header.Value))
			}
		})
	}
}
