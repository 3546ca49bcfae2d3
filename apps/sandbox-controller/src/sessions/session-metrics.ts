import { counter, gauge } from '@etude/platform/metrics';

export const sessionEnds = counter({ name: 'etude_sandbox_sessions_ended_total', help: 'Sessions that ended, by how', labels: ['state'] });

/** Read at each scrape. */
export function gaugeSessions(open: () => number): void {
  gauge({ name: 'etude_sandbox_sessions', help: 'Sessions that this controller holds or opens', collect: open });
}
