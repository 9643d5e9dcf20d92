/* The C interface of noctule-rmw-core (ffi/src), for the sources of this package alone.
 *
 * Pointers are borrowed for the call unless a function's name ends in _new, _open (the caller frees the result with the _free of the same type) or
 * _take (the caller frees the message). Text is UTF-8 with a terminating zero. Every function may be called from any thread.
 */
#ifndef NOCTULE_RMW_H_
#define NOCTULE_RMW_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nrmw_context nrmw_context;
typedef struct nrmw_node nrmw_node;
typedef struct nrmw_writer nrmw_writer;
typedef struct nrmw_reader nrmw_reader;
typedef struct nrmw_client nrmw_client;
typedef struct nrmw_server nrmw_server;
typedef struct nrmw_waitable nrmw_waitable;
typedef struct nrmw_signal nrmw_signal;

/* Why a call failed: one sentence. Longer ones are cut. */
typedef struct nrmw_error { char text[512]; } nrmw_error;

/* Durations in ns; 0: none. */
typedef struct nrmw_quality {
  bool reliable;
  bool transient_local;
  bool keep_all;
  uint32_t depth;
  int64_t deadline_ns;
  int64_t lifespan_ns;
} nrmw_quality;

typedef struct nrmw_topic {
  const char * name;
  const char * type_name;
  uint64_t type_hash;
  const uint8_t * rihs01; /* 32 bytes, or NULL */
  nrmw_quality quality;
  uint64_t bytes_max; /* of a message; 0: the type has no bound */
  bool is_plain; /* it lies in memory as in CDR, so that it can be lent */
} nrmw_topic;

typedef struct nrmw_service {
  const char * name;
  const char * request_name;
  uint64_t request_hash;
  const char * response_name;
  uint64_t response_hash;
  const uint8_t * rihs01; /* 32 bytes, or NULL */
  nrmw_quality quality;
} nrmw_service;

/* A message. source_ns: INT64_MIN if it is not known. gid: of the publisher, or of the client of the request; number: of the publisher's
 * samples, or of the client's requests. is_lent: the bytes lie in shared memory, which can only be read. */
typedef struct nrmw_message {
  const uint8_t * bytes;
  size_t length;
  int64_t source_ns;
  int64_t received_ns;
  int64_t number;
  uint64_t received;
  uint8_t gid[16];
  bool is_lent;
  void * owner;
} nrmw_message;

typedef struct nrmw_status {
  uint64_t total;
  uint64_t total_change;
  uint64_t current;
  int64_t current_change;
  uint32_t policy; /* NRMW_POLICY_ */
} nrmw_status;

enum { NRMW_POLICY_NONE, NRMW_POLICY_DURABILITY, NRMW_POLICY_DEADLINE, NRMW_POLICY_RELIABILITY };
enum {
  NRMW_MATCHED, NRMW_DEADLINE, NRMW_INCOMPATIBLE_QOS, NRMW_INCOMPATIBLE_TYPE, NRMW_LIVELINESS, NRMW_LOST,
};

/* Lists of nrmw_names and nrmw_count. */
enum {
  NRMW_TOPICS, NRMW_ALL_TOPICS, NRMW_PUBLISHED, NRMW_SUBSCRIBED, NRMW_SERVICES, NRMW_SERVED, NRMW_CALLED,
};

/* An end of a topic, for the visit alone. */
typedef struct nrmw_entry {
  const char * node_namespace;
  const char * node_name;
  const char * type_name;
  const uint8_t * rihs01; /* or NULL */
  nrmw_quality quality;
  uint8_t gid[16];
} nrmw_entry;

typedef void (* nrmw_notify)(bool is_warning, const char * text);
typedef void (* nrmw_listener)(const void * user_data, size_t count);
typedef void (* nrmw_visit_node)(void * to, const char * namespace_, const char * name, const char * enclave);
typedef void (* nrmw_visit_name)(void * to, const char * name, const char * type_name); /* type "": none is known */
typedef void (* nrmw_visit_entry)(void * to, const nrmw_entry * entry);

/* peers: peer_count texts. */
nrmw_context * nrmw_context_new(
  uint32_t domain, bool localhost, const char * const * peers, size_t peer_count, const char * enclave,
  nrmw_notify notify, nrmw_error * error);
void nrmw_context_free(nrmw_context * context);

nrmw_node * nrmw_node_open(nrmw_context * context, const char * namespace_, const char * name, nrmw_error * error);
void nrmw_node_free(nrmw_node * node);
nrmw_waitable * nrmw_node_graph(nrmw_node * node);
/* 0: the text is no description. */
uint64_t nrmw_node_describe(nrmw_node * node, const char * text);

nrmw_writer * nrmw_writer_open(nrmw_node * node, const nrmw_topic * topic, nrmw_error * error);
void nrmw_writer_free(nrmw_writer * writer);
/* 0: done; 1: a reader is too far behind; 2: failed. */
int nrmw_writer_publish(nrmw_writer * writer, const uint8_t * bytes, size_t length, nrmw_error * error);
/* A place for a message of so many bytes with its header, of a topic that is plain: what is behind the header is aligned to 8. Valid for
 * writing until it is published or given back, or the writer is freed. NULL: failed. */
uint8_t * nrmw_writer_lend(nrmw_writer * writer, size_t length, nrmw_error * error);
/* As nrmw_writer_publish; whatever it returns, the place is given back. */
int nrmw_writer_publish_lent(nrmw_writer * writer, const uint8_t * place, size_t length, nrmw_error * error);
/* False: nothing was lent there. */
bool nrmw_writer_give_back(nrmw_writer * writer, const uint8_t * place);
size_t nrmw_writer_matched(const nrmw_writer * writer);
void nrmw_writer_gid(const nrmw_writer * writer, uint8_t * gid);
nrmw_waitable * nrmw_writer_event(nrmw_writer * writer, uint32_t kind);
nrmw_status nrmw_writer_status(nrmw_writer * writer, uint32_t kind);
/* timeout_ns < 0: for ever. */
bool nrmw_writer_wait_for_acknowledgments(nrmw_writer * writer, int64_t timeout_ns);

nrmw_reader * nrmw_reader_open(nrmw_node * node, const nrmw_topic * topic, bool ignores_own, nrmw_error * error);
void nrmw_reader_free(nrmw_reader * reader);
bool nrmw_reader_take(nrmw_reader * reader, nrmw_message * message);
size_t nrmw_reader_matched(const nrmw_reader * reader);
void nrmw_reader_gid(const nrmw_reader * reader, uint8_t * gid);
nrmw_waitable * nrmw_reader_waitable(nrmw_reader * reader);
nrmw_waitable * nrmw_reader_event(nrmw_reader * reader, uint32_t kind);
nrmw_status nrmw_reader_status(nrmw_reader * reader, uint32_t kind);

nrmw_client * nrmw_client_open(nrmw_node * node, const nrmw_service * service, nrmw_error * error);
void nrmw_client_free(nrmw_client * client);
/* The request's number, from 1; 0: it is too long. */
int64_t nrmw_client_send(nrmw_client * client, const uint8_t * bytes, size_t length, nrmw_error * error);
bool nrmw_client_take(nrmw_client * client, nrmw_message * message);
size_t nrmw_client_servers(const nrmw_client * client);
void nrmw_client_gid(const nrmw_client * client, uint8_t * gid);
nrmw_waitable * nrmw_client_waitable(nrmw_client * client);

nrmw_server * nrmw_server_open(nrmw_node * node, const nrmw_service * service, nrmw_error * error);
void nrmw_server_free(nrmw_server * server);
bool nrmw_server_take(nrmw_server * server, nrmw_message * message);
/* 0: done; 1: the gid is of no client; 2: the response is too long, with the limit in error. */
int nrmw_server_reply(
  nrmw_server * server, const uint8_t * gid, int64_t number, const uint8_t * bytes, size_t length,
  nrmw_error * error);
nrmw_waitable * nrmw_server_waitable(nrmw_server * server);

void nrmw_message_free(nrmw_message * message);

/* A guard condition. */
nrmw_waitable * nrmw_guard_new(void);
void nrmw_guard_free(nrmw_waitable * guard);
void nrmw_waitable_set(nrmw_waitable * waitable);
bool nrmw_waitable_is_ready(const nrmw_waitable * waitable);
/* Whether something was there; now nothing is. */
bool nrmw_waitable_clear(nrmw_waitable * waitable);
/* listener NULL: nobody listens. user_data must live until then. */
void nrmw_waitable_listen(nrmw_waitable * waitable, nrmw_listener listener, const void * user_data);

nrmw_signal * nrmw_signal_new(void);
void nrmw_signal_free(nrmw_signal * signal);
/* timeout_ns < 0: for ever. False: the time is over. */
bool nrmw_wait(nrmw_signal * signal, nrmw_waitable * const * waitables, size_t count, int64_t timeout_ns);

void nrmw_nodes(const nrmw_context * context, void * to, nrmw_visit_node visit);
/* node_name NULL: of all nodes. False: there is no such node. */
bool nrmw_names(
  const nrmw_context * context, uint32_t wanted, const char * node_namespace, const char * node_name,
  void * to, nrmw_visit_name visit);
size_t nrmw_count(const nrmw_context * context, uint32_t wanted, const char * name);
void nrmw_ends(const nrmw_context * context, const char * topic, bool writes, void * to, nrmw_visit_entry visit);

#ifdef __cplusplus
}
#endif
#endif  /* NOCTULE_RMW_H_ */
