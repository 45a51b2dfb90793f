// KafkaJS's conformance program; ../README.md describes its interface and scenarios.
'use strict'

const { readFileSync } = require('node:fs')
const {
  Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, Partitioners, logLevel,
} = require('kafkajs')
const snappy = require('kafkajs-snappy')
const lz4 = require('lz4-napi')
const { ZstdCodec } = require('zstd-codec')

const DEADLINE_MS = 40_000
const BATCH = 80
const brokersExpected = Number(process.env.CONFORMANCE_BROKERS ?? 1)
const TRANSACTION_RECORDS = 40

// KafkaJS brings gzip only; the other codecs are plugged in.
CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async (encoder) => lz4.compressFrameSync(encoder.buffer),
  decompress: async (buffer) => lz4.decompressFrameSync(buffer),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from((await zstd()).compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from((await zstd()).decompress(buffer)),
})
const zstd = () => new Promise((resolve) => ZstdCodec.run((codec) => resolve(new codec.Simple())))

const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

let topic, kafka, admin
const results = []

function check(name, ok, detail) {
  results.push(ok)
  console.log(JSON.stringify(ok ? { check: name, ok } : { check: name, ok, detail: show(detail) }))
}

const show = (detail) => (typeof detail === 'string' ? detail : JSON.stringify(detail) ?? '')

async function produceConsume(codec) {
  await createTopic(1)
  const base = Date.now() - 3_600_000
  const sent = Array.from({ length: 600 }, (_, i) => sampleRecord(i, base))
  const offsets = []
  await withProducer({}, async (producer) => {
    for (let from = 0; from < sent.length; from += 100) {
      const messages = sent.slice(from, from + 100)
      const compression = CODECS[codec]
      const [written] = await producer.send({ topic, acks: -1, compression, messages })
      offsets.push(Number(written.baseOffset))
    }
  })
  const placed = offsets.every((offset, i) => offset === 100 * i)
  check('acknowledged offsets count from zero', placed, offsets)
  const got = await readFromStart(sent.length)
  check('as many records are read as were sent', got.length === sent.length, got.length)
  const wrong = got.findIndex((message, i) => !sent[i] || fields(message) !== fields(sent[i], i))
  const detail = wrong < 0 ? '' : fields(got[wrong])
  check('every field of every record survives', wrong < 0, detail)
}

function sampleRecord(i, base) {
  const record = {
    partition: 0,
    key: `key-${i}`,
    value: `value-${i}`.padEnd(200, 'x'),
    timestamp: String(base + i),
    headers: {},
  }
  // KafkaJS cannot encode a header whose value is null, so that one is left out.
  const change = [
    { headers: { trace: String(i) } }, { key: null }, { value: null }, { value: '' }, { key: '' },
    { headers: { dup: ['1', '2'], empty: '' } },
  ][i % 6]
  return { ...record, ...change }
}

/** The record as one comparable string; null stays apart from empty. */
function fields({ offset, key, value, timestamp, headers }, position) {
  const text = (bytes) => (bytes === null ? null : bytes.toString())
  const flat = Object.entries(headers).map(([name, values]) => [name, [values].flat().map(text)])
  return JSON.stringify([String(position ?? offset), text(key), text(value), timestamp, flat])
}

async function group() {
  await createTopic(4)
  const seen = []
  const first = await join(seen)
  const second = await join(seen)
  await until(() => share(first, second))
  check('two members share all partitions', share(first, second), [first.owned, second.owned])

  await produceBatch('one')
  await untilRead(seen, BATCH)
  check('two members read every record once', exactly(seen, 'one'), seen)
  const { groups: [described] } = await admin.describeGroups([topic])
  check('the described group is stable with two members',
    described.state === 'Stable' && described.members.length === 2, described)
  await commit(first)
  await commit(second)
  await second.consumer.disconnect()

  // KafkaJS goes back to the committed offsets at every rebalance, so that one comes first.
  await until(() => first.owned.length === 4)
  check('the rest goes to the member that stays', first.owned.length === 4, first.owned)
  await produceBatch('two')
  await untilRead(seen, 2 * BATCH)
  check('nothing is lost or repeated after one leaves', exactly(seen, 'one', 'two'), seen)
  await commit(first)
  await first.consumer.disconnect()

  await produceBatch('three')
  const resumed = []
  const third = await join(resumed)
  await untilRead(resumed, BATCH)
  check('a later member resumes from the commit', exactly(resumed, 'three'), resumed)
  await commit(third)
  await third.consumer.disconnect()
  const [{ partitions }] = await admin.fetchOffsets({ groupId: topic, topics: [topic] })
  const sum = partitions.reduce((total, { offset }) => total + Number(offset), 0)
  check('the committed offsets cover every record', sum === 3 * BATCH, partitions)
}

async function join(seen) {
  const consumer = kafka.consumer({
    groupId: topic, sessionTimeout: 6000, heartbeatInterval: 300, maxWaitTimeInMs: 200,
  })
  const member = { consumer, owned: [], next: new Map() }
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    member.owned = payload.memberAssignment[topic] ?? []
    member.next.clear()
  })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      seen.push(message.value.toString())
      member.next.set(partition, String(Number(message.offset) + 1))
    },
  })
  return member
}

function share(first, second) {
  const all = [...first.owned, ...second.owned].sort()
  return first.owned.length > 0 && second.owned.length > 0 && all.join() === '0,1,2,3'
}

const commit = ({ consumer, next }) =>
  consumer.commitOffsets([...next].map(([partition, offset]) => ({ topic, partition, offset })))

async function produceBatch(name) {
  const messages = Array.from({ length: BATCH }, (_, i) => ({
    partition: i % 4, value: `${name}-${i}`,
  }))
  await withProducer({}, (producer) => producer.send({ topic, acks: -1, messages }))
}

/** Waits for `wanted` different records, then one more fetch's time for what should not come. */
async function untilRead(seen, wanted) {
  await until(() => new Set(seen).size >= wanted)
  await pause(300)
}

function exactly(seen, ...batches) {
  const of = (name) => Array.from({ length: BATCH }, (_, i) => `${name}-${i}`)
  const expected = batches.flatMap(of)
  return [...seen].sort().join() === expected.sort().join()
}

async function idempotent() {
  await createTopic(1)
  for (const run of [0, 1]) {
    // KafkaJS keeps the order only with one request in flight.
    await withProducer({ idempotent: true, maxInFlightRequests: 1 }, async (producer) => {
      for (let from = 500 * run; from < 500 * (run + 1); from += 10) {
        const messages = Array.from({ length: 10 }, (_, i) => ({
          partition: 0, value: String(from + i),
        }))
        await producer.send({ topic, acks: -1, messages })
      }
    })
  }
  const got = await readFromStart(1000)
  check('every record is there once', got.length === 1000, got.length)
  const wrong = got.findIndex(({ value }, i) => value.toString() !== String(i))
  check('the order is that of sending', wrong < 0, wrong)
}

async function administration() {
  const wanted = {
    topic, numPartitions: 3, configEntries: [{ name: 'retention.ms', value: '7200000' }],
  }
  await admin.createTopics({ topics: [wanted], waitForLeaders: false })
  await awaitPartitions(3)
  const described = await partitions()
  check('the topic has three partitions', described.length === 3, described)
  const led = described.every(({ leader, isr }) => leader >= 0 && isr.includes(leader))
  check('every partition has a leader and itself in sync', led, described)
  check('the list of topics has it', (await admin.listTopics()).includes(topic))
  const { resources: [config] } = await admin.describeConfigs({
    includeSynonyms: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
  })
  const retention = config.configEntries.find(({ configName }) => configName === 'retention.ms')
  check('the described config is the one given', retention?.configValue === '7200000', config)
  // KafkaJS answers false where the server says TOPIC_ALREADY_EXISTS.
  const repeated = await admin.createTopics({ topics: [wanted], waitForLeaders: false })
  check('a second creation is refused', repeated === false, repeated)
  await admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] })
  await awaitPartitions(5)
  check('partitions can be added', (await partitions()).length === 5, await partitions())
  const { brokers, controller } = await admin.describeCluster()
  check('the cluster names its nodes and controller', brokers.length === brokersExpected
    && brokers.some(({ nodeId }) => nodeId === controller), brokers)
  await admin.deleteTopics({ topics: [topic] })
  await awaitPartitions(0)
  check('a deleted topic is gone', (await partitions()).length === 0)
  // KafkaJS takes this error for a passing one and would repeat the request for seconds.
  const impatient = kafka.admin({ retry: { retries: 0 } })
  await impatient.connect()
  const refusal = await impatient.deleteTopics({ topics: [topic] })
    .then(() => 'none', (error) => error.cause?.type ?? error.type ?? error.message)
  await impatient.disconnect()
  check('an absent topic cannot be deleted', refusal === 'UNKNOWN_TOPIC_OR_PARTITION', refusal)
}

async function offsets() {
  await createTopic(1)
  const base = Date.now() - 3_600_000
  const messages = Array.from({ length: 10 }, (_, i) => ({
    partition: 0, value: 'x'.repeat(10), timestamp: String(base + 1000 * i),
  }))
  await withProducer({}, (producer) => producer.send({ topic, acks: -1, messages }))
  const [range] = await admin.fetchTopicOffsets(topic)
  check('earliest is zero', range.low === '0', range)
  check('latest is the end', range.high === '10', range)
  // KafkaJS cannot ask for the highest timestamp (KIP-734), and it puts the end offset where the
  // server knows no record after the time.
  for (const [name, time, expected] of [
    ["a record's own time finds it", base + 3000, '3'],
    ['a time between finds the next', base + 3001, '4'],
    ['a time before all finds the first', base - 5000, '0'],
    ['a time after all finds none', base + 9001, '10'],
  ]) {
    const [found] = await admin.fetchTopicOffsetsByTimestamp(topic, time)
    check(name, found.offset === expected, found)
  }
}

async function transactions() {
  await createTopic(2)
  const producer = await transactional()
  const committed = []
  for (const i of [0, 1, 2, 3, 4, 5]) {
    const transaction = await producer.transaction()
    const values = await writeIn(transaction, `t${i}`)
    if (i % 3 === 1) {
      await transaction.abort()
    } else {
      await transaction.commit()
      committed.push(...values)
    }
  }
  const open = await producer.transaction()
  await writeIn(open, 'open')
  // KafkaJS reads committed records unless it is asked for all.
  const wanted = [...committed].sort().join()
  const isWanted = (read) => read.sort().join() === wanted
  let read = await readAll('committed', false, committed.length)
  check('committed records are read, and no others', isWanted(read), read)
  const all = await readAll('all', true, 7 * TRANSACTION_RECORDS)
  check('all records are read by who reads uncommitted ones',
    all.length === 7 * TRANSACTION_RECORDS, all.length)
  await open.abort()
  read = await readAll('afterwards', false, committed.length)
  check('nothing that was aborted is read in the end', isWanted(read), read)
  await producer.disconnect()
  await transactionalOffsets()
  await fencing()
}

async function transactionalOffsets() {
  const producer = await transactional()
  const partitions = [0, 1].map((partition) => ({ partition, offset: String(10 + partition) }))
  const topics = [{ topic, partitions }]
  const found = async () => {
    const [{ partitions: offsets }] = await admin.fetchOffsets({ groupId: topic, topics: [topic] })
    return offsets.map(({ offset }) => offset).sort().join()
  }
  const aborted = await producer.transaction()
  await aborted.sendOffsets({ consumerGroupId: topic, topics })
  await aborted.abort()
  const none = await found()
  check('an abort commits no offsets', none === '-1,-1', none)
  const committed = await producer.transaction()
  await committed.sendOffsets({ consumerGroupId: topic, topics })
  await committed.commit()
  const both = await found()
  check('offsets are those of the commit', both === '10,11', both)
  await producer.disconnect()
}

async function fencing() {
  const first = await transactional()
  const fenced = await first.transaction()
  await writeIn(fenced, 'fenced')
  const second = await transactional()
  const transaction = await second.transaction()
  await writeIn(transaction, 'second')
  const refusal = await fenced.commit().then(() => 'none', ({ type }) => type)
  check('a producer that was fenced cannot commit',
    ['PRODUCER_FENCED', 'INVALID_PRODUCER_EPOCH'].includes(refusal), refusal)
  await transaction.commit()
  const read = await readAll('fenced', false, 5 * TRANSACTION_RECORDS)
  const count = (name) => read.filter((value) => value.startsWith(name)).length
  check('records of fenced producers are not read',
    count('second') === TRANSACTION_RECORDS && count('fenced') === 0, read)
  await second.disconnect()
  await first.disconnect()
}

async function transactional() {
  const producer = kafka.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    transactionalId: topic,
    idempotent: true,
    maxInFlightRequests: 1,
    retry: { retries: 5 },
  })
  await producer.connect()
  return producer
}

async function writeIn(transaction, name) {
  const values = Array.from({ length: TRANSACTION_RECORDS }, (_, i) => `${name}-${i}`)
  const messages = values.map((value, i) => ({ partition: i % 2, value }))
  await transaction.send({ topic, acks: -1, messages })
  return values
}

/** The values of all partitions that a reader sees. */
async function readAll(name, readUncommitted, wanted) {
  const consumer = kafka.consumer({
    groupId: `${topic}-${name}`, readUncommitted, maxWaitTimeInMs: 200,
  })
  const values = []
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const eachMessage = async ({ message }) => values.push(message.value.toString())
  await consumer.run({ autoCommit: false, eachMessage })
  await until(() => values.length >= wanted)
  await pause(300)
  await consumer.disconnect()
  return values
}

async function createTopic(numPartitions) {
  await admin.createTopics({ topics: [{ topic, numPartitions }], waitForLeaders: false })
  await awaitPartitions(numPartitions)
}

/** The topic's partitions; empty where it does not exist. */
async function partitions() {
  if (!(await admin.listTopics()).includes(topic)) return []
  return admin.fetchTopicMetadata({ topics: [topic] }).then(
    ({ topics }) => topics[0].partitions,
    (error) => {
      // Deleted between the two requests.
      if (error.type === 'UNKNOWN_TOPIC_OR_PARTITION') return []
      throw error
    },
  )
}

/** A created topic is not yet in every broker's metadata when the answer arrives. */
const awaitPartitions = (count) => until(async () => (await partitions()).length === count)

async function withProducer(settings, work) {
  const producer = kafka.producer({
    createPartitioner: Partitioners.DefaultPartitioner, ...settings,
  })
  await producer.connect()
  await work(producer)
  await producer.disconnect()
}

async function readFromStart(wanted) {
  // KafkaJS reads through a group only.
  const consumer = kafka.consumer({ groupId: `${topic}-reader`, maxWaitTimeInMs: 200 })
  const got = []
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({ autoCommit: false, eachMessage: async ({ message }) => got.push(message) })
  await until(() => got.length >= wanted)
  await pause(300)
  await consumer.disconnect()
  return got
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

async function until(condition) {
  const deadline = Date.now() + DEADLINE_MS
  while (!(await condition()) && Date.now() < deadline) await pause(20)
}

async function main([bootstrap, scenario, topicName, codec]) {
  const scenarios = {
    'produce-consume': () => produceConsume(codec),
    group,
    idempotent,
    admin: administration,
    offsets,
    transactions,
  }
  topic = topicName
  const authority = process.env.CONFORMANCE_AUTHORITY
  const ssl = authority && { ca: [readFileSync(authority)] }
  const brokers = bootstrap.split(',')
  kafka = new Kafka({ clientId: 'conformance', brokers, ssl, logLevel: logLevel.NOTHING })
  admin = kafka.admin()
  await admin.connect()
  await scenarios[scenario]()
  await admin.disconnect()
  process.exit(results.length > 0 && results.every(Boolean) ? 0 : 1)
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error)
  process.exit(1)
})
