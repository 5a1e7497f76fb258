# For Nix: `nix-build packages/nix` in a checkout. The package has the programs, man pages and completions; a NixOS module is not part of it.
{ pkgs ? import <nixpkgs> { } }:

pkgs.rustPlatform.buildRustPackage {
  pname = "eke";
  version = "0.1.0";
  src = builtins.fetchGit ../..;
  cargoLock.lockFile = ../../Cargo.lock;

  nativeBuildInputs = [ pkgs.pkg-config pkgs.llvmPackages.clang-unwrapped ];
  buildInputs = [ pkgs.elfutils pkgs.zlib ];
  # The wrapped clang adds flags that the target bpf does not know.
  CLANG = "${pkgs.llvmPackages.clang-unwrapped}/bin/clang";
  cargoBuildFlags = [
    "-p" "eke-cli" "-p" "eke-agent" "-p" "eke-cache-engine" "-p" "eke-cache-serve" "-p" "eke-dash" "-p" "eke-iod" "-p" "eke-prefetchd"
    "-p" "eke-ltsp" "-p" "eke-record" "-p" "eke-bench"
    "--features" "eke-prefetchd/bpf,eke-iod/bpf"
  ];
  # The tests change the machine that they run on.
  doCheck = false;

  installPhase = ''
    runHook preInstall
    make install-files install-bench-files BIN=target/${pkgs.stdenv.hostPlatform.rust.rustcTarget}/release PREFIX=$out SYSCONFDIR=$out/etc DESTDIR=
    runHook postInstall
  '';

  meta = {
    description = "Pays for what a machine is short of with spare CPU time";
    license = with pkgs.lib.licenses; [ mit asl20 ];
    platforms = pkgs.lib.platforms.linux;
    mainProgram = "eke";
  };
}
