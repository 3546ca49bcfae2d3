import { EtudeError } from '@etude/contracts/errors';
import type { StoreOptions, VectorModel } from '../record-store.js';
import type { StoreFile, WholeFile } from './store-file.js';
import { requireModel } from './store-identity.js';
import { createVectors, dropVectors } from './store-schema.js';
import type { TenantRows } from './tenant-rows.js';

interface ModelRow {
  readonly id: number;
  readonly name: string;
  readonly dimension: number;
  readonly ready: number;
}

/** The vector models of a file, and the number of each. */
export class VectorModels {
  readonly #file: StoreFile;

  constructor(file: StoreFile) {
    this.#file = file;
  }

  async list(): Promise<readonly VectorModel[]> {
    const models = await this.#file.readWhole(modelRows);
    return models.map(modelOf);
  }

  async add({ name, dimension }: StoreOptions['model']): Promise<void> {
    await this.#file.writeWhole((file) => {
      const known = modelRows(file).find((model) => model.name === name);
      if (known?.dimension === dimension) return;
      if (known !== undefined) {
        throw new EtudeError(
          'MEMORY_VERSION',
          `the memory file ${this.#file.path} has vectors of ${name} with ${known.dimension} dimensions, and ${dimension} were asked for; ` +
            'give the other embedder another name, or drop the old vectors first',
        );
      }
      if (!Number.isInteger(dimension) || dimension < 1 || dimension > 8_192) {
        throw new EtudeError('INVALID_ARGUMENT', `vectors of ${name} would have ${dimension} dimensions; 1 to 8,192 can be kept`);
      }
      file.run('INSERT INTO model (name, dimension, ready) VALUES (?, ?, 0)', name, BigInt(dimension));
      const id = modelRows(file).find((model) => model.name === name)?.id ?? 0;
      file.exec(createVectors(id));
    });
  }

  async setReady(name: string): Promise<void> {
    await this.#file.writeWhole((file) => {
      if (file.run('UPDATE model SET ready = 1 WHERE name = ?', name) === 0) throw this.#unknown(name);
    });
  }

  async drop(name: string): Promise<void> {
    await this.#file.writeWhole((file) => {
      const models = modelRows(file);
      const known = models.find((model) => model.name === name);
      if (known === undefined) return;
      if (known.ready === 1 && models.filter(({ ready }) => ready === 1).length === 1) {
        throw new EtudeError(
          'FAILED_PRECONDITION',
          `the vectors of ${name} are the only ones that are searched; make those of another model ready first`,
        );
      }
      file.exec(dropVectors(known.id));
      file.run('DELETE FROM embedding WHERE model = ?', BigInt(known.id));
      file.run('DELETE FROM model WHERE id = ?', BigInt(known.id));
    });
  }

  /** Within a transaction on a tenant's rows. @throws EtudeError MEMORY_VERSION where it was dropped meanwhile */
  numberOf(rows: TenantRows, model: StoreOptions['model']): number {
    return this.find(rows, model.name, (stored) => {
      requireModel(stored, model, this.#file.path);
    }).id;
  }

  /** @throws EtudeError NOT_FOUND */
  find(rows: TenantRows, name: string, check: (stored: readonly VectorModel[]) => void = () => undefined): ModelRow {
    const models = rows.all<ModelRow>('SELECT id, name, dimension, ready FROM model WHERE :tenant IS NOT NULL');
    check(models.map(modelOf));
    const known = models.find((model) => model.name === name);
    if (known === undefined) throw this.#unknown(name);
    return known;
  }

  #unknown(name: string): EtudeError {
    return new EtudeError('NOT_FOUND', `the memory file ${this.#file.path} has no vectors of a model ${name}; add it first`);
  }
}

function modelRows(file: WholeFile): ModelRow[] {
  return file.all<ModelRow>('SELECT id, name, dimension, ready FROM model ORDER BY id');
}

function modelOf({ name, dimension, ready }: ModelRow): VectorModel {
  return { name, dimension, state: ready === 1 ? 'ready' : 'building' };
}
