package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

func (p *program) produceConsume(name string) error {
	codec, known := codecs[name]
	if !known {
		return fmt.Errorf("unknown codec %s", name)
	}
	if err := p.createTopic(1); err != nil {
		return err
	}
	base := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	var sent []*sarama.ProducerMessage
	for i := range 600 {
		sent = append(sent, p.sampleRecord(i, base.Add(time.Duration(i)*time.Millisecond)))
	}
	config := p.config()
	config.Producer.Compression = codec
	config.Producer.Flush.Frequency = 20 * time.Millisecond
	if err := p.produce(config, sent); err != nil {
		return err
	}
	misplaced := slices.IndexFunc(sent, func(m *sarama.ProducerMessage) bool {
		return m.Offset != m.Timestamp.Sub(base).Milliseconds()
	})
	p.check("acknowledged offsets count from zero", misplaced < 0, misplaced)
	got, err := p.read(0, sarama.ReadUncommitted, len(sent))
	if err != nil {
		return err
	}
	p.check("as many records are read as were sent", len(got) == len(sent), len(got))
	wrong := slices.IndexFunc(got, func(m *sarama.ConsumerMessage) bool {
		return m.Offset >= int64(len(sent)) || !same(m, sent[m.Offset])
	})
	detail := ""
	if wrong >= 0 {
		detail = fmt.Sprintf("%+v", got[wrong])
	}
	p.check("every field of every record survives", wrong < 0, detail)
	return nil
}

func (p *program) sampleRecord(i int, stamp time.Time) *sarama.ProducerMessage {
	value := fmt.Appendf(nil, "value-%d", i)
	value = append(value, bytes.Repeat([]byte("x"), 200-len(value))...)
	message := &sarama.ProducerMessage{
		Topic:     p.topic,
		Key:       sarama.ByteEncoder(fmt.Appendf(nil, "key-%d", i)),
		Value:     sarama.ByteEncoder(value),
		Timestamp: stamp,
	}
	header := func(name string, value []byte) sarama.RecordHeader {
		return sarama.RecordHeader{Key: []byte(name), Value: value}
	}
	switch i % 6 {
	case 0:
		message.Headers = []sarama.RecordHeader{header("trace", fmt.Append(nil, i))}
	case 1:
		message.Key = nil
	case 2:
		message.Value = nil
	case 3:
		message.Value = sarama.ByteEncoder{}
	case 4:
		message.Key = sarama.ByteEncoder{}
	default:
		message.Headers = []sarama.RecordHeader{
			header("dup", []byte("1")), header("dup", []byte("2")),
			header("empty", []byte{}), header("null", nil),
		}
	}
	return message
}

func same(got *sarama.ConsumerMessage, sent *sarama.ProducerMessage) bool {
	headers := len(got.Headers) == len(sent.Headers)
	for i := 0; headers && i < len(sent.Headers); i++ {
		headers = sameBytes(got.Headers[i].Key, sent.Headers[i].Key) &&
			sameBytes(got.Headers[i].Value, sent.Headers[i].Value)
	}
	return headers && sameBytes(got.Key, encoded(sent.Key)) &&
		sameBytes(got.Value, encoded(sent.Value)) && got.Timestamp.Equal(sent.Timestamp)
}

func encoded(encoder sarama.Encoder) []byte {
	if encoder == nil {
		return nil
	}
	return encoder.(sarama.ByteEncoder)
}

// sameBytes tells null from empty, which bytes.Equal does not.
func sameBytes(a, b []byte) bool {
	return bytes.Equal(a, b) && (a == nil) == (b == nil)
}

func (p *program) idempotent() error {
	if err := p.createTopic(1); err != nil {
		return err
	}
	config := p.config()
	config.Producer.Idempotent = true
	// Sarama keeps the order of an idempotent producer only with one request in flight.
	config.Net.MaxOpenRequests = 1
	config.Producer.Flush.MaxMessages = 10
	for run := range 2 {
		var messages []*sarama.ProducerMessage
		for i := range 500 {
			messages = append(messages, p.message(0, fmt.Sprint(500*run+i)))
		}
		if err := p.produce(config, messages); err != nil {
			return err
		}
	}
	got, err := p.read(0, sarama.ReadUncommitted, 1000)
	if err != nil {
		return err
	}
	p.check("every record is there once", len(got) == 1000, len(got))
	wrong := slices.IndexFunc(got, func(m *sarama.ConsumerMessage) bool {
		return string(m.Value) != strconv.FormatInt(m.Offset, 10)
	})
	p.check("the order is that of sending", wrong < 0, wrong)
	return nil
}

func (p *program) message(partition int32, value string) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{
		Topic: p.topic, Partition: partition, Value: sarama.StringEncoder(value),
	}
}
