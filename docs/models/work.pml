/*
 * Enqueue, claim, finish, takeover and fence, for one key and its lease, two members and one enqueuer.
 *
 * An inline bears the name of the function it stands for: enqueue in store/transaction.py, claim in store/claims.py,
 * finish_done in store/ends.py, join in engine/membership.py, bury in store/members.py, acquire and release in
 * store/leases.py, require in store/fence.py. One atomic block is one statement at READ COMMITTED, or the COMMIT of a
 * transaction: PostgreSQL lets nobody see less. Row locks are modelled where another statement meets them: the
 * fence's FOR KEY SHARE, and the row that an open enqueue holds.
 *
 * Three properties, asserted wherever they could break:
 *   no lost wake-up    a committed enqueue that no committed run has seen stands in the queue
 *   no overlap         at most one fenced transaction of the key is open
 *   no loser commits   who commits a run or a finish holds the lease at the epoch it ran under
 * And one that spin adds: nobody waits for ever while the key is queued (invalid end state).
 *
 * Each of -DNO_GENERATION, -DNO_INCARNATION, -DNO_LOCK, -DNO_UNIQUE, -DNO_FENCE and -DNO_FINISH_FENCE leaves one
 * rule out and must break a property; tests/models asserts both. -DLOSERS_MAY_COMMIT drops the third property, to
 * look past it.
 */

#ifndef ENQUEUES
#define ENQUEUES 3      /* transactions of the enqueuer */
#endif
#ifndef DEATHS
#define DEATHS 2        /* how often a member is taken for dead */
#endif
#ifndef RELEASES
#define RELEASES 1      /* how often a lease is given back while all is well */
#endif

#define NOBODY 2

/* compute_work: the row of the key. */
bool queued;
byte id, generation;
byte next_id = 1;
bool row_locked;            /* by an enqueue that has not committed */

/* compute_leases and compute_workers. */
byte holder = NOBODY, epoch;
bool live[2];               /* its row is there and has not ended */
bool key_share[2];          /* its open transaction holds FOR KEY SHARE on the lease */

/* Evidence. */
byte want, seen;            /* committed enqueues; of which a committed run has seen so many */
byte inside;                /* fenced transactions that are open */
byte deaths, releases;
bool forgotten, quiet;

#define lost_wake_up (seen < want && !queued)

/* The fence's conflict with a change of epoch: (name, epoch) is UNIQUE, and the takeover locks FOR UPDATE. */
#ifdef NO_UNIQUE
#define may_take true
#else
#define may_take (!key_share[0] && !key_share[1])
#endif

#define holds(me) (holder == me && epoch == my_epoch && live[me])

/* What each rule asks; a rule that is left out asks nothing. */
#ifdef NO_FENCE
#define fence_holds(me) true
#else
#define fence_holds(me) holds(me)
#endif
#ifdef NO_LOCK
#define locks_key_share false
#else
#define locks_key_share true
#endif
#ifdef NO_FINISH_FENCE
#define finish_holds(me) true
#else
#define finish_holds(me) holds(me)
#endif
#ifdef NO_INCARNATION
#define same_incarnation true
#else
#define same_incarnation (id == claimed_id)
#endif
#ifdef NO_GENERATION
#define same_generation true
#else
#define same_generation (generation == claimed_generation)
#endif

/* Its time may be over, but nobody else has taken the lease. */
#ifdef LOSERS_MAY_COMMIT
#define commits_rightly(me) true
#else
#define commits_rightly(me) (holder == me && epoch == my_epoch)
#endif

inline join(me) {
  live[me] = true;
}

/* Burial makes the lease free; the fence refuses whoever was buried. A member that lives may be buried too. */
inline bury(other) {
  atomic { live[other] && deaths < DEATHS -> live[other] = false; deaths++ }
}

inline acquire(me) {
  atomic {
    live[me] && (holder == NOBODY || !live[holder] || (holder == me && my_epoch != epoch)) && may_take ->
      holder = me; epoch++; my_epoch = epoch
  }
}

inline release(me) {
  atomic {
    releases < RELEASES && holder == me && my_epoch == epoch && may_take ->
      holder = NOBODY; epoch++; my_epoch = 0; releases++
  }
}


/* Writes nothing, and asks nobody: the member may be wrong about its lease. */
inline claim() {
  atomic { my_epoch != 0 && queued -> claimed_id = id; claimed_generation = generation }
}

/* The first statement of the run's transaction. */
inline require(me) {
  atomic {
    if
    :: fence_holds(me) ->
       fenced = true; key_share[me] = locks_key_share; inside++;
       assert(inside <= 1)                         /* no overlap */
    :: else -> fenced = false                      /* LeaseLost */
    fi
  }
}

inline commit(me) {
  atomic {
    assert(commits_rightly(me));                   /* no loser commits */
    if :: saw > seen -> seen = saw :: else fi;
    key_share[me] = false; inside--
  }
}

inline rollback(me) {
  atomic { key_share[me] = false; inside-- }
}

/* DONE: delete the row at the incarnation and generation that were claimed; leave it when an enqueue holds it. */
inline finish_done(me) {
  atomic {
    if
    :: queued && !row_locked && finish_holds(me) && same_incarnation && same_generation ->
          assert(commits_rightly(me));               /* no loser commits */
          queued = false;
          assert(!lost_wake_up)
    :: else                                           /* dirty, held, or lost: the key stays as it is */
    fi
  }
}

proctype member(byte me) {
  byte my_epoch, claimed_id, claimed_generation, saw;
  bool fenced;

  do
  :: !live[me] -> join(me)
  :: acquire(me)
  :: release(me)
  :: bury(1 - me)
  :: claim();
     /* It believes that it holds the lease: nobody asks whether that is still true until the fence does. */
     require(me);
     if
     :: fenced ->
        saw = want;
        if
        :: commit(me);
           if
           :: finish_done(me)
           :: true                                    /* SYNC_AGAIN, or it died before the finish */
           fi
        :: rollback(me)                               /* raised, or ended by the server while it was frozen */
        fi
     :: !fenced -> my_epoch = 0
     fi;
     claimed_id = 0; claimed_generation = 0; saw = 0; fenced = false
  :: !queued && quiet -> break
  od
}

/* A transaction that enqueues: the row is locked, or made unseen, until it commits or rolls back. */
inline enqueue() {
  atomic { !row_locked -> if :: queued -> row_locked = true; bumps = true :: else -> bumps = false fi };
  if
  :: atomic {
       /* COMMIT. A row that was deleted meanwhile cannot be one that this transaction had locked. */
       want++;
       if
       :: bumps -> generation++
       :: else -> queued = true; id = next_id; next_id++; generation = 1
       fi;
       row_locked = false
     }
  :: atomic { row_locked = false }                    /* ROLLBACK */
  fi
}

proctype enqueuer() {
  byte count;
  bool bumps;

  do
  :: count < ENQUEUES -> enqueue(); count++
  :: atomic {
       /* An operator deletes the row: a deliberate loss, after which the key begins anew at generation 1. */
       !forgotten && queued && !row_locked -> queued = false; seen = want; forgotten = true
     }
  :: count == ENQUEUES -> quiet = true; break
  od
}

init {
  atomic { run member(0); run member(1); run enqueuer() }
}
