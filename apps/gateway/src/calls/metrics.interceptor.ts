import { errorCode } from '@etude/contracts/errors';
import type { ServerCall } from '@etude/contracts/grpc';
import { counter, histogram } from '@etude/platform/metrics';
import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { type Observable, tap } from 'rxjs';

const calls = counter({ name: 'etude_grpc_calls_total', help: 'Finished gRPC calls by method and code', labels: ['method', 'code'] });
const seconds = histogram({ name: 'etude_grpc_call_seconds', help: 'How long gRPC calls took, streams included', labels: ['method'] });

/** Rate, errors and duration of each method. Calls that the guard refused are counted by the log alone. */
@Injectable()
export class MetricsInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const method = context.getArgs<[object, unknown, ServerCall]>()[2].getPath();
    const stop = seconds.startTimer({ method });
    let code = 'CANCELLED';
    return next.handle().pipe(
      tap({
        complete: () => (code = 'OK'),
        error: (error: unknown) => (code = errorCode(error)),
        finalize: () => {
          stop();
          calls.inc({ method, code });
        },
      }),
    );
  }
}
