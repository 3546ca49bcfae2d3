import { EtudeError } from '@etude/contracts/errors';
import type { Scope } from '@etude/contracts/memory';
import { requireOwn } from '@etude/domain/ports/memory';
import type { SQLInputValue, StatementSync } from 'node:sqlite';
import type { TenantView } from '../record-store.js';

export type Value = string | number | null | Uint8Array;
export type Values = Readonly<Record<string, Value>>;
/** Returns the same prepared statement for the same text. */
export type Prepare = (sql: string) => StatementSync;
/** The number of an unknown principal or tenant. No row has it. */
const NOBODY = -1;
const NO_USER = 0;
/** Prefix of the parameters for the view's agents; their index follows. */
const AGENT = 'scopeAgent';
const USER = 'scopeUser';

export interface OwnerNumbers {
  readonly agent: number;
  readonly user: number;
}

/**
 * The only access to a tenant's rows, inside one transaction. Binds the tenant itself and refuses a statement that doesn't ask for it. So no caller
 * can bypass or forget the tenant.
 * @throws EtudeError TENANT_MISSING for a scope without a tenant, before anything is read
 */
export class TenantRows {
  readonly #prepare: Prepare;
  readonly #name: string;
  readonly #tenant: bigint;
  readonly #agents: readonly number[];
  readonly #user: number | null;
  readonly #owners = new Map<string, OwnerNumbers>();
  /** SQL to append to a WHERE clause. Limits it to the agents and users of the view. */
  readonly within: string;

  /** @param enrols whether a tenant without a number gets one; allowed only in a writing transaction */
  constructor(prepare: Prepare, view: TenantView, enrols = false) {
    this.#prepare = prepare;
    this.#name = view.tenant;
    const known = numberOf(prepare('SELECT id FROM tenant WHERE name = ?').get(view.tenant));
    const enrol = () => prepare('INSERT INTO tenant (name) VALUES (?)').run(view.tenant).lastInsertRowid;
    this.#tenant = BigInt(known === NOBODY && enrols ? enrol() : known);
    this.#agents = (view.agents ?? []).map((agent) => this.#principal('agent', agent));
    const user = view.users?.find((name) => name !== null);
    this.#user = user === undefined || user === null ? null : this.#principal('user', user);
    const users = view.users?.map((name) => (name === null ? String(NO_USER) : `:${USER}`));
    const agents = this.#agents.map((_, i) => `:${AGENT}${i}`);
    const ofAgents = agents.length === 0 ? '' : agents.length === 1 ? ` AND agent = ${agents[0]}` : ` AND agent IN (${agents.join(', ')})`;
    this.within = `${ofAgents}${users === undefined ? '' : ` AND user IN (${users.join(', ')})`}`;
  }

  all<T>(sql: string, values: Values = {}): T[] {
    const plan = planOf(sql);
    return this.#prepare(plan.sql).all(...this.#bound(plan, values)) as T[];
  }

  /** Rows as tuples, for very many rows. No other method may get the same statement. */
  tuples<T extends readonly Value[]>(sql: string, values: Values = {}): T[] {
    const plan = planOf(sql);
    const statement = this.#prepare(plan.sql);
    statement.setReturnArrays(true);
    return statement.all(...this.#bound(plan, values)) as unknown as T[];
  }

  /** Rows one by one, for a caller that may stop early. Nobody else may use the statement meanwhile. */
  iterate<T>(sql: string, values: Values = {}): IterableIterator<T> {
    const plan = planOf(sql);
    return this.#prepare(plan.sql).iterate(...this.#bound(plan, values)) as IterableIterator<T>;
  }

  run(sql: string, values: Values = {}): { changes: number; row: number } {
    const plan = planOf(sql);
    const statement = this.#prepare(plan.sql);
    // FTS5 has row numbers that are too large for a JavaScript number.
    statement.setReadBigInts(true);
    const { changes, lastInsertRowid } = statement.run(...this.#bound(plan, values));
    return { changes: Number(changes), row: Number(lastInsertRowid) };
  }

  /** Numbers of a record's agent and user. A new name gets a number. Only in a writing transaction. @throws EtudeError PERMISSION_DENIED */
  ownerOf(scope: Scope): OwnerNumbers {
    requireOwn(this.#name, scope);
    const name = JSON.stringify([scope.agent, scope.user]);
    const known = this.#owners.get(name);
    if (known !== undefined) return known;
    const owner = { agent: this.#enrol('agent', scope.agent), user: scope.user === null ? NO_USER : this.#enrol('user', scope.user) };
    this.#owners.set(name, owner);
    return owner;
  }

  #enrol(kind: 'agent' | 'user', name: string): number {
    this.run('INSERT OR IGNORE INTO principal (tenant, kind, name) VALUES (:tenant, :kind, :name)', { kind, name });
    return this.#principal(kind, name);
  }

  #principal(kind: 'agent' | 'user', name: string): number {
    return numberOf(this.all('SELECT id FROM principal WHERE tenant = :tenant AND kind = :kind AND name = :name', { kind, name })[0]);
  }

  #bound({ names, own }: Plan, values: Values): SQLInputValue[] {
    return names.map((name) => {
      if (own.has(name)) return this.#own(name);
      const value = values[name];
      if (value === undefined) throw new Error(`a statement on memory has no value for ":${name}"`);
      return exact(value);
    });
  }

  #own(name: string): SQLInputValue {
    if (name === 'tenant') return this.#tenant;
    if (name === USER) return exact(this.#user);
    return exact(this.#agents[Number(name.slice(AGENT.length))] ?? NOBODY);
  }
}

/** A statement with positional parameters, and their names in order. */
interface Plan {
  readonly sql: string;
  readonly names: readonly string[];
  /** The names that `TenantRows` binds itself. */
  readonly own: ReadonlySet<string>;
}

const PLANS = new Map<string, Plan>();
const PLANS_MAX = 1_000;
const NAMED = /:([a-z]\w*)/gi;

/** Replaces named parameters by positional ones. node:sqlite looks up each name in every run, which takes longer than many statements. */
function planOf(text: string): Plan {
  const known = PLANS.get(text);
  if (known !== undefined) return known;
  const names = Array.from(text.matchAll(NAMED), ([, name = '']) => name);
  if (!names.includes('tenant')) throw new EtudeError('TENANT_MISSING', `a statement on memory has no condition on the tenant: ${text}`);
  if (PLANS.size >= PLANS_MAX) PLANS.clear();
  const own = new Set(names.filter((name) => name === 'tenant' || name === USER || name.startsWith(AGENT)));
  const plan = { sql: text.replaceAll(NAMED, '?'), names, own };
  PLANS.set(text, plan);
  return plan;
}

function numberOf(row: unknown): number {
  return (row as { id: number } | undefined)?.id ?? NOBODY;
}

/** node:sqlite binds numbers as REAL, which virtual tables don't accept as integers. */
function exact(value: Value): SQLInputValue {
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value;
}
