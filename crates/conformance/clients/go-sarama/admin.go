package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

func (p *program) administration() error {
	retention := "7200000"
	wanted := topicOf(3)
	wanted.ConfigEntries = map[string]*string{"retention.ms": &retention}
	if err := p.admin.CreateTopic(p.topic, wanted, false); err != nil {
		return err
	}
	p.awaitPartitions(3)
	partitions := p.partitions()
	p.check("the topic has three partitions", len(partitions) == 3, partitions)
	led := !slices.ContainsFunc(partitions, func(partition *sarama.PartitionMetadata) bool {
		return partition.Leader < 0 || !slices.Contains(partition.Isr, partition.Leader)
	})
	p.check("every partition has a leader and itself in sync", led, partitions)
	topics, err := p.admin.ListTopics()
	_, listed := topics[p.topic]
	p.check("the list of topics has it", err == nil && listed, err)
	configs, err := p.admin.DescribeConfig(
		sarama.ConfigResource{Type: sarama.TopicResource, Name: p.topic})
	if err != nil {
		return err
	}
	given := slices.ContainsFunc(configs, func(entry sarama.ConfigEntry) bool {
		return entry.Name == "retention.ms" && entry.Value == retention
	})
	p.check("the described config is the one given", given, configs)
	err = p.admin.CreateTopic(p.topic, wanted, false)
	p.check("a second creation is refused", errors.Is(err, sarama.ErrTopicAlreadyExists), err)
	if err = p.admin.CreatePartitions(p.topic, 5, nil, false); err != nil {
		return err
	}
	p.awaitPartitions(5)
	p.check("partitions can be added", len(p.partitions()) == 5, p.partitions())
	brokers, controller, err := p.admin.DescribeCluster()
	if err != nil {
		return err
	}
	isController := func(it *sarama.Broker) bool { return it.ID() == controller }
	p.check("the cluster names its nodes and controller",
		fmt.Sprint(len(brokers)) == cmp.Or(os.Getenv("CONFORMANCE_BROKERS"), "1") &&
			slices.ContainsFunc(brokers, isController), fmt.Sprint(brokers, controller))
	if err = p.admin.DeleteTopic(p.topic); err != nil {
		return err
	}
	p.awaitPartitions(0)
	p.check("a deleted topic is gone", len(p.partitions()) == 0, p.partitions())
	err = p.admin.DeleteTopic(p.topic)
	refused := errors.Is(err, sarama.ErrUnknownTopicOrPartition)
	p.check("an absent topic cannot be deleted", refused, err)
	return nil
}

func (p *program) offsets() error {
	if err := p.createTopic(1); err != nil {
		return err
	}
	base := time.Now().Add(-time.Hour).UnixMilli()
	var messages []*sarama.ProducerMessage
	for i := range int64(10) {
		message := p.message(0, "xxxxxxxxxx")
		message.Timestamp = time.UnixMilli(base + 1000*i)
		messages = append(messages, message)
	}
	config := p.config()
	config.Producer.Flush.Frequency = 50 * time.Millisecond
	if err := p.produce(config, messages); err != nil {
		return err
	}
	for _, lookup := range []struct {
		name           string
		stamp, expects int64
	}{
		{"earliest is zero", sarama.OffsetOldest, 0},
		{"latest is the end", sarama.OffsetNewest, 10},
		{"a record's own time finds it", base + 3000, 3},
		{"a time between finds the next", base + 3001, 4},
		{"a time before all finds the first", base - 5000, 0},
		{"a time after all finds none", base + 9001, -1},
	} {
		found, err := p.client.GetOffset(p.topic, 0, lookup.stamp)
		p.check(lookup.name, err == nil && found == lookup.expects, fmt.Sprint(found, err))
	}
	return nil
}
