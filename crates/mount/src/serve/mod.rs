//! The supervisor, its workers, mounting, take-over, the socket.
