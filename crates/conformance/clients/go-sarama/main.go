// Sarama's conformance program; ../README.md describes its interface and scenarios.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

const deadline = 40 * time.Second

type program struct {
	bootstrap []string
	topic     string
	// Trusted certificates; nil where connections are not secured.
	trusted  *x509.CertPool
	client   sarama.Client
	admin    sarama.ClusterAdmin
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
	if len(args) < 3 {
		return errors.New("usage: client BOOTSTRAP SCENARIO TOPIC [CODEC]")
	}
	p := &program{bootstrap: strings.Split(args[0], ","), topic: args[2]}
	if authority := os.Getenv("CONFORMANCE_AUTHORITY"); authority != "" {
		certificates, err := os.ReadFile(authority)
		if err != nil {
			return err
		}
		p.trusted = x509.NewCertPool()
		p.trusted.AppendCertsFromPEM(certificates)
	}
	var err error
	if p.client, err = sarama.NewClient(p.bootstrap, p.config()); err != nil {
		return err
	}
	if p.admin, err = sarama.NewClusterAdminFromClient(p.client); err != nil {
		return err
	}
	defer p.admin.Close()
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
	case "transactions":
		err = p.transactions()
	default:
		err = fmt.Errorf("unknown scenario %s", args[1])
	}
	if err == nil && (p.failures > 0 || p.checks == 0) {
		err = fmt.Errorf("%d of %d checks failed", p.failures, p.checks)
	}
	return err
}

// config is that of every client: newest versions, records of all replicas, partitions by hand.
func (p *program) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	if p.trusted != nil {
		config.Net.TLS.Enable = true
		config.Net.TLS.Config = &tls.Config{RootCAs: p.trusted}
	}
	return config
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

func (p *program) createTopic(partitions int32) error {
	err := p.admin.CreateTopic(p.topic, topicOf(partitions), false)
	p.awaitPartitions(int(partitions))
	return err
}

func topicOf(partitions int32) *sarama.TopicDetail {
	return &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: -1}
}

// partitions is empty where the topic does not exist.
func (p *program) partitions() []*sarama.PartitionMetadata {
	topics, err := p.admin.DescribeTopics([]string{p.topic})
	if err != nil || len(topics) != 1 || topics[0].Err != sarama.ErrNoError {
		return nil
	}
	return topics[0].Partitions
}

// awaitPartitions waits since a created topic is not yet in every broker's metadata when the
// answer arrives.
func (p *program) awaitPartitions(count int) {
	until(func() bool { return len(p.partitions()) == count })
}

func until(condition func() bool) {
	end := time.Now().Add(deadline)
	for !condition() && time.Now().Before(end) {
		time.Sleep(20 * time.Millisecond)
	}
}

func (p *program) produce(config *sarama.Config, messages []*sarama.ProducerMessage) error {
	producer, err := sarama.NewSyncProducer(p.bootstrap, config)
	if err != nil {
		return err
	}
	return errors.Join(producer.SendMessages(messages), producer.Close())
}

// read returns what a partition holds, up to as many records as are wanted, and what follows soon.
func (p *program) read(
	partition int32, isolation sarama.IsolationLevel, wanted int,
) ([]*sarama.ConsumerMessage, error) {
	config := p.config()
	config.Consumer.IsolationLevel = isolation
	consumer, err := sarama.NewConsumer(p.bootstrap, config)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	reader, err := consumer.ConsumePartition(p.topic, partition, 0)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	var got []*sarama.ConsumerMessage
	last := time.After(deadline)
	for {
		var soon <-chan time.Time
		if len(got) >= wanted {
			soon = time.After(300 * time.Millisecond)
		}
		select {
		case message := <-reader.Messages():
			got = append(got, message)
		case <-soon:
			return got, nil
		case <-last:
			return got, nil
		}
	}
}
