import { create, toBinary } from '@bufbuild/protobuf';
import { FieldDescriptorProto_Label as Label, FieldDescriptorProto_Type as Type, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';

const method = (name: string, input: string, output: string, serverStreaming = false) => ({
  name,
  inputType: `.grpc.health.v1.${input}`,
  outputType: `.grpc.health.v1.${output}`,
  serverStreaming,
});
const statuses = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
const response = '.grpc.health.v1.HealthCheckResponse';

const file = create(FileDescriptorProtoSchema, {
  name: 'grpc/health/v1/health.proto',
  package: 'grpc.health.v1',
  syntax: 'proto3',
  messageType: [
    { name: 'HealthCheckRequest', field: [{ name: 'service', number: 1, type: Type.STRING, label: Label.OPTIONAL }] },
    {
      name: 'HealthCheckResponse',
      field: [{ name: 'status', number: 1, type: Type.ENUM, label: Label.OPTIONAL, typeName: `${response}.ServingStatus` }],
      enumType: [{ name: 'ServingStatus', value: statuses.map((name, number) => ({ name, number })) }],
    },
    { name: 'HealthListRequest' },
    {
      name: 'HealthListResponse',
      field: [
        {
          name: 'statuses',
          number: 1,
          type: Type.MESSAGE,
          label: Label.REPEATED,
          typeName: '.grpc.health.v1.HealthListResponse.StatusesEntry',
        },
      ],
      nestedType: [
        {
          name: 'StatusesEntry',
          field: [
            { name: 'key', number: 1, type: Type.STRING, label: Label.OPTIONAL },
            { name: 'value', number: 2, type: Type.MESSAGE, label: Label.OPTIONAL, typeName: response },
          ],
          options: { mapEntry: true },
        },
      ],
    },
  ],
  service: [
    {
      name: 'Health',
      method: [
        method('Check', 'HealthCheckRequest', 'HealthCheckResponse'),
        method('List', 'HealthListRequest', 'HealthListResponse'),
        method('Watch', 'HealthCheckRequest', 'HealthCheckResponse', true),
      ],
    },
  ],
});

/** `grpc.health.v1` for reflection. The health package's own descriptor does not survive its loader: map entries lose their types. */
export const healthReflection = {
  'grpc.health.v1.Health': { fileDescriptorProtos: [Buffer.from(toBinary(FileDescriptorProtoSchema, file))] },
};
