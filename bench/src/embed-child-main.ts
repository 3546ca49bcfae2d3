import { embedderConfig, embedderFrom } from '@etude/model/model-config';
import { percentile, timed } from './figures.js';

/** Program `embed-child-main lexical|sentence`: measures one embedder in its own process and prints one JSON line. */
const WORDS = 'read the lines of a file and count how often each word occurs then print them sorted by number'.split(' ');
/** A text whose words have about one token each. */
const textOf = (words: number, nth: number) => Array.from({ length: words - 2 }, (_, i) => WORDS[(i * 7 + nth) % WORDS.length]).join(' ');
const MIB = 1024 * 1024;

const embedder = await embedderFrom(
  embedderConfig.parse({ ...process.env, ETUDE_EMBEDDER: process.argv[2], ETUDE_EMBEDDING_CACHE_MAX_BYTES: '0' }),
);
const rssBefore = process.memoryUsage.rss();

/** Median wall time and processor time of embedding a single text. Other processes change the processor time less. */
async function perText(words: number, rounds: number): Promise<{ wallMs: number; cpuMs: number }> {
  const times: number[] = [];
  const before = process.cpuUsage();
  for (let i = 0; i < rounds; i += 1) times.push(await timed(() => embedder.embed([textOf(words, i)])));
  const { user, system } = process.cpuUsage(before);
  return { wallMs: percentile(times, 50), cpuMs: (user + system) / 1_000 / rounds };
}

const cpuBefore = process.cpuUsage();
const firstMs = await timed(() => embedder.embed(['the first text']));
const firstCpu = process.cpuUsage(cpuBefore);
const rssLoaded = process.memoryUsage.rss();
const short = await perText(20, 41);
const long = await perText(200, 21);
const batch = Array.from({ length: 32 }, (_, i) => textOf(256, i));
const batchMs = await timed(() => embedder.embed(batch));
process.stdout.write(
  `${JSON.stringify({
    first_ms: firstMs,
    first_cpu_ms: (firstCpu.user + firstCpu.system) / 1_000,
    ms_20_tokens: short.wallMs,
    cpu_ms_20_tokens: short.cpuMs,
    ms_200_tokens: long.wallMs,
    cpu_ms_200_tokens: long.cpuMs,
    ms_of_32_long: batchMs / batch.length,
    loaded_mib: (rssLoaded - rssBefore) / MIB,
    // maxRSS is the process's peak so far, in KiB.
    peak_mib: process.resourceUsage().maxRSS / 1024 - rssBefore / MIB,
  })}\n`,
);
