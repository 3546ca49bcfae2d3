import { EtudeError } from '@etude/contracts/errors';
import type { Scope } from '@etude/contracts/memory';
import type { ReadScope } from '@etude/domain/ports/memory';
import { requireOwn, requireScope } from '@etude/domain/retrieval/scopes';
import type { SQLInputValue, StatementSync } from 'node:sqlite';

export type Value = string | number | null | Uint8Array;
export type Values = Readonly<Record<string, Value>>;
/** Gives the same prepared statement for the same text. */
export type Prepare = (sql: string) => StatementSync;

/** Of a principal, or tenant, that was never seen: no row has it. */
const NOBODY = -1;
const NO_USER = 0;

export interface Owner {
  readonly agent: number;
  readonly user: number;
}

/**
 * The only way to rows of a tenant, inside one transaction.
 *
 * Binds the tenant itself and refuses a statement that does not ask for it, so no caller can go round it or forget it.
 * @throws EtudeError TENANT_MISSING for a scope without a tenant; nothing is read then.
 */
export class TenantRows {
  readonly #prepare: Prepare;
  readonly #name: string;
  readonly #tenant: number;
  readonly #agent: number | null;
  readonly #user: number | null;
  /** To append to a WHERE: the agent and the user of the scope, where it names them. */
  readonly within: string;

  /** `writing` gives a tenant that is new its number. */
  constructor(prepare: Prepare, scope: ReadScope, writing: boolean) {
    this.#prepare = prepare;
    this.#name = requireScope(scope).tenant;
    if (writing) prepare('INSERT OR IGNORE INTO tenant (name) VALUES (?)').run(this.#name);
    this.#tenant = numberOf(prepare('SELECT id FROM tenant WHERE name = ?').get(this.#name));
    this.#agent = scope.agent === null ? null : this.#principal('agent', scope.agent);
    this.#user = typeof scope.user === 'string' ? this.#principal('user', scope.user) : null;
    this.within = `${this.#agent === null ? '' : ' AND agent = :scopeAgent'}${this.#user === null ? '' : ` AND user IN (${NO_USER}, :scopeUser)`}`;
  }

  all<T>(sql: string, values: Values = {}): T[] {
    return this.#prepare(this.#guarded(sql)).all(this.#bound(sql, values)) as T[];
  }

  run(sql: string, values: Values = {}): { changes: number; row: number } {
    const { changes, lastInsertRowid } = this.#prepare(this.#guarded(sql)).run(this.#bound(sql, values));
    return { changes: Number(changes), row: Number(lastInsertRowid) };
  }

  /** @throws EtudeError PERMISSION_DENIED */
  requireOwn(scope: Scope): void {
    requireOwn(this.#name, scope);
  }

  /** Numbers of a record's agent and user, given if they are new. Only in a writing transaction. */
  ownerOf(scope: Scope): Owner {
    this.requireOwn(scope);
    return {
      agent: this.#enrol('agent', scope.agent),
      user: scope.user === null ? NO_USER : this.#enrol('user', scope.user),
    };
  }

  /** Whether this is the first time; remembered with the transaction. */
  markApplied(kind: AppliedKind, id: string): boolean {
    return this.run('INSERT OR IGNORE INTO applied (tenant, kind, id) VALUES (:tenant, :kind, :id)', { kind, id }).changes === 1;
  }

  wasApplied(kind: AppliedKind, id: string): boolean {
    return this.all('SELECT 1 FROM applied WHERE tenant = :tenant AND kind = :kind AND id = :id', { kind, id }).length > 0;
  }

  #enrol(kind: 'agent' | 'user', name: string): number {
    this.run('INSERT OR IGNORE INTO principal (tenant, kind, name) VALUES (:tenant, :kind, :name)', { kind, name });
    return this.#principal(kind, name);
  }

  #principal(kind: 'agent' | 'user', name: string): number {
    return numberOf(this.all('SELECT id FROM principal WHERE tenant = :tenant AND kind = :kind AND name = :name', { kind, name })[0]);
  }

  #guarded(sql: string): string {
    if (!/:tenant\b/.test(sql)) throw new EtudeError('TENANT_MISSING', `a statement on memory does not ask for the tenant: ${sql}`);
    return sql;
  }

  #bound(sql: string, values: Values): Record<string, SQLInputValue> {
    const all: Record<string, Value> = { ...values, tenant: this.#tenant };
    if (sql.includes(':scopeAgent')) all.scopeAgent = this.#agent;
    if (sql.includes(':scopeUser')) all.scopeUser = this.#user;
    return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, exact(value)]));
  }
}

export type AppliedKind = 'write' | 'facts' | 'use';

function numberOf(row: unknown): number {
  return (row as { id: number } | undefined)?.id ?? NOBODY;
}

/** node:sqlite binds numbers as REAL, which virtual tables do not take for an integer. */
function exact(value: Value): SQLInputValue {
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value;
}
