package main

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func (p *program) produceConsume(name string) error {
	codec, known := codecs[name]
	if !known {
		return fmt.Errorf("unknown codec %s", name)
	}
	if err := p.createTopic(1); err != nil {
		return err
	}
	base := time.Now().Add(-time.Hour).UnixMilli()
	var sent []*kgo.Record
	for i := range int64(600) {
		sent = append(sent, sampleRecord(i, time.UnixMilli(base+i)))
	}
	err := p.produce(sent, kgo.ProducerBatchCompression(codec),
		kgo.ProducerLinger(20*time.Millisecond))
	if err != nil {
		return err
	}
	misplaced := slices.IndexFunc(sent, func(r *kgo.Record) bool {
		return r.Offset != r.Timestamp.UnixMilli()-base
	})
	p.check("acknowledged offsets count from zero", misplaced < 0, misplaced)
	got, err := p.readFromStart(len(sent))
	if err != nil {
		return err
	}
	p.check("as many records are read as were sent", len(got) == len(sent), len(got))
	wrong := slices.IndexFunc(got, func(r *kgo.Record) bool {
		return r.Offset >= int64(len(sent)) || !same(r, sent[r.Offset])
	})
	detail := ""
	if wrong >= 0 {
		detail = fmt.Sprintf("%+v", got[wrong])
	}
	p.check("every field of every record survives", wrong < 0, detail)
	return nil
}

func sampleRecord(i int64, stamp time.Time) *kgo.Record {
	value := fmt.Appendf(nil, "value-%d", i)
	value = append(value, bytes.Repeat([]byte("x"), 200-len(value))...)
	record := &kgo.Record{Key: fmt.Appendf(nil, "key-%d", i), Value: value, Timestamp: stamp}
	switch i % 6 {
	case 0:
		record.Headers = []kgo.RecordHeader{{Key: "trace", Value: fmt.Append(nil, i)}}
	case 1:
		record.Key = nil
	case 2:
		record.Value = nil
	case 3:
		record.Value = []byte{}
	case 4:
		record.Key = []byte{}
	default:
		record.Headers = []kgo.RecordHeader{
			{Key: "dup", Value: []byte("1")}, {Key: "dup", Value: []byte("2")},
			{Key: "empty", Value: []byte{}}, {Key: "null", Value: nil},
		}
	}
	return record
}

func same(got, sent *kgo.Record) bool {
	headers := slices.EqualFunc(got.Headers, sent.Headers, func(a, b kgo.RecordHeader) bool {
		return a.Key == b.Key && sameBytes(a.Value, b.Value)
	})
	return headers && sameBytes(got.Key, sent.Key) && sameBytes(got.Value, sent.Value) &&
		got.Timestamp.Equal(sent.Timestamp)
}

// sameBytes tells null from empty, which bytes.Equal does not.
func sameBytes(a, b []byte) bool {
	return bytes.Equal(a, b) && (a == nil) == (b == nil)
}
