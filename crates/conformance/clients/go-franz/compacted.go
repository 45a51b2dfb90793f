package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A deleted key goes with the second cleaning, and a server may clean four times a minute.
const cleaningTime = 90 * time.Second

func (p *program) compacted() error {
	policy, age, ratio := "compact", "100", "0.01"
	settings := map[string]*string{
		"cleanup.policy": &policy, "segment.ms": &age, "delete.retention.ms": &age,
		"min.cleanable.dirty.ratio": &ratio,
	}
	if _, err := p.admin.CreateTopic(p.ctx, 1, -1, settings, p.topic); err != nil {
		return err
	}
	p.awaitPartitions(1)
	newest := map[string]string{}
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		if err := p.produceUpdates(codec, newest); err != nil {
			return err
		}
	}
	end, err := p.endOffset()
	if err != nil {
		return err
	}
	got, err := p.awaitCleaned(end, len(newest))
	if err != nil {
		return err
	}
	kept := below(got, end)
	values := map[string]string{}
	for _, record := range kept {
		values[string(record.Key)] = string(record.Value)
	}
	once := len(kept) == len(newest) && maps.Equal(values, newest)
	p.check("every key has its newest value, once", once, keys(got))
	p.check("offsets ascend", ascend(got), keys(got))
	_, present := values["deleted"]
	p.check("a deleted key is gone", !present, keys(got))
	starts := []int64{1, end - 2, end - 1}
	for start := int64(0); start < end; start += 37 {
		starts = append(starts, start)
	}
	var stuck []int64
	for _, start := range starts {
		read, atEnd, err := p.readToEnd(start)
		if err != nil {
			return err
		}
		if !atEnd || !ascend(read) || read[0].Offset < start {
			stuck = append(stuck, start)
		}
	}
	p.check("a reader goes on from every offset, kept or not", len(stuck) == 0, stuck)
	return nil
}

// produceUpdates sends many updates of few keys in batches of 50, so that of a batch little or
// nothing stays.
func (p *program) produceUpdates(codec string, newest map[string]string) error {
	record := func(key, value string) *kgo.Record {
		newest[key] = value
		return &kgo.Record{Key: []byte(key), Value: []byte(value)}
	}
	records := []*kgo.Record{record("deleted", codec)}
	for i := range 200 {
		value := fmt.Sprintf("%s-%d-%050d", codec, i, 0)
		records = append(records, record(fmt.Sprintf("key-%d", i%10), value))
	}
	// The newest value of this key stands before the end of its batch, whose tail goes.
	records = slices.Insert(records, len(records)-5, record("early", codec))
	records = append(records, &kgo.Record{Key: []byte("deleted")})
	delete(newest, "deleted")
	for batch := range slices.Chunk(records, 50) {
		err := p.produce(batch, kgo.ProducerBatchCompression(codecs[codec]),
			kgo.ProducerLinger(50*time.Millisecond))
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitCleaned reads the topic until only the newest record of each key is left below the end.
// Kafka cleans a segment only once a later record has closed it, so one more is sent each time.
func (p *program) awaitCleaned(end int64, wanted int) (got []*kgo.Record, err error) {
	p.untilWithin(cleaningTime, func() bool {
		tick := &kgo.Record{Key: []byte("tick"), Value: []byte("tick")}
		if err = p.produce([]*kgo.Record{tick}); err != nil {
			return true
		}
		var atEnd bool
		got, atEnd, err = p.readToEnd(0)
		return err != nil || (atEnd && len(below(got, end)) <= wanted)
	})
	return got, err
}

// readToEnd reads what stands at or after an offset, and tells whether the end was reached. The
// last record of the topic is the newest of its key, so it is always there.
func (p *program) readToEnd(start int64) (got []*kgo.Record, atEnd bool, err error) {
	end, err := p.endOffset()
	if err != nil {
		return nil, false, err
	}
	from := map[string]map[int32]kgo.Offset{p.topic: {0: kgo.NewOffset().At(start)}}
	consumer, err := p.client(kgo.ConsumePartitions(from))
	if err != nil {
		return nil, false, err
	}
	defer consumer.Close()
	p.until(func() bool {
		got = append(got, p.poll(consumer)...)
		atEnd = len(got) > 0 && got[len(got)-1].Offset >= end-1
		return atEnd
	})
	return got, atEnd, nil
}

func (p *program) endOffset() (int64, error) {
	listed, err := p.admin.ListEndOffsets(p.ctx, p.topic)
	if err != nil {
		return 0, err
	}
	end, _ := listed.Lookup(p.topic, 0)
	return end.Offset, end.Err
}

func below(records []*kgo.Record, end int64) []*kgo.Record {
	after := slices.IndexFunc(records, func(r *kgo.Record) bool { return r.Offset >= end })
	if after < 0 {
		return records
	}
	return records[:after]
}

func ascend(records []*kgo.Record) bool {
	for i := 1; i < len(records); i++ {
		if records[i].Offset <= records[i-1].Offset {
			return false
		}
	}
	return true
}

func keys(records []*kgo.Record) string {
	var text string
	for _, record := range records[:min(len(records), 40)] {
		text += fmt.Sprintf("%d %s, ", record.Offset, record.Key)
	}
	return fmt.Sprintf("%sof %d", text, len(records))
}
