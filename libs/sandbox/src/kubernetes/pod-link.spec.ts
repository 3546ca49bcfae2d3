import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { encodeFrame, FrameReader, type SupervisorFrame } from '../frames.js';
import { PodLink } from './pod-link.js';

const never = new AbortController().signal;
const TIMES = { connectTimeoutMs: 60_000, helloTimeoutMs: 60_000 };
const HELLO = { type: 'hello', protocol: 2, sandbox: 'pod/uid' };

/** A fake supervisor: sends a hello and answers each frame as the test specifies. */
async function supervisor(
  hello: SupervisorFrame | null,
  answer: (frame: SupervisorFrame, socket: Socket) => SupervisorFrame[],
): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const reader = new FrameReader();
    sockets.add(socket);
    socket.on('error', () => undefined);
    if (hello) socket.write(encodeFrame(hello));
    socket.on('data', (chunk: Buffer) => {
      for (const frame of reader.feed(chunk) as SupervisorFrame[])
        for (const reply of answer(frame, socket)) socket.write(encodeFrame(reply));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const open = (port: number, times = TIMES) => PodLink.open({ ip: '127.0.0.1', port, supervisor: 'pod/uid' }, times, never);

describe('the connection to a pod', () => {
  it('is refused by a pod with another name', async () => {
    const port = await supervisor({ ...HELLO, sandbox: 'pod/another' }, () => []);
    await expect(open(port)).rejects.toThrow('now belongs to pod/another, not to pod/uid');
  });

  it('is closed when no hello arrives', async () => {
    const port = await supervisor(null, () => []);
    await expect(open(port, { ...TIMES, helloTimeoutMs: 30 })).rejects.toThrow('sent no hello');
  });

  it('binds with claim and token', async () => {
    const heard: SupervisorFrame[] = [];
    const port = await supervisor(HELLO, (frame) => {
      heard.push(frame);
      return [{ type: 'bound', claim: frame.claim }];
    });
    const link = await open(port);
    onTestFinished(() => link.abandon());
    expect(await link.bind('c1', 'token', 15_000, 60_000)).toEqual({ outcome: 'bound' });
    expect(heard).toEqual([{ type: 'bind', claim: 'c1', token: 'token', leaseMs: 15_000 }]);
  });

  it('distinguishes a claimed pod from a silent one', async () => {
    const claimed = await open(await supervisor(HELLO, () => [{ type: 'refused', code: 'claimed', reason: 'another claim holds it' }]));
    onTestFinished(() => claimed.abandon());
    expect(await claimed.bind('c1', 't', 1_000, 60_000)).toMatchObject({ outcome: 'claimed' });
    const silent = await open(await supervisor(HELLO, () => []));
    expect(await silent.bind('c1', 't', 1_000, 30)).toMatchObject({ outcome: 'silent' });
    expect(silent.alive).toBe(false);
  });

  it('ends when another connection takes its claim', async () => {
    const link = await open(await supervisor(HELLO, () => [{ type: 'refused', code: 'superseded', reason: 'bound elsewhere' }]));
    onTestFinished(() => link.abandon());
    link.send({ type: 'lease' });
    expect(await link.receive()).toBeNull();
    expect(link.superseded).toBe(true);
  });

  it('notices that its pings are not answered', async () => {
    const answers = await open(
      await supervisor(HELLO, ({ type }) => [
        { type: 'refused', code: 'unknown' },
        { type: 'seen', what: type },
      ]),
    );
    onTestFinished(() => answers.abandon());
    expect(answers.ping()).toBe(true);
    expect(await answers.receive()).toMatchObject({ type: 'seen', what: 'ping' });
    expect(answers.ping()).toBe(true);
    const silent = await open(await supervisor(HELLO, () => []));
    onTestFinished(() => silent.abandon());
    expect([silent.ping(), silent.ping()]).toEqual([true, false]);
  });

  it('requests the end of process 1 and ends with it', async () => {
    const port = await supervisor(HELLO, (frame, socket) => {
      if (frame.type === 'close') socket.end();
      return [];
    });
    const link = await open(port);
    await link.destroy();
    expect(link.alive).toBe(false);
  });
});
