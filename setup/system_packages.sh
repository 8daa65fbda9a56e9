#!/bin/sh
# Checks for programs that are no Python packages; installs what is missing where that is possible (root on Debian or
# Ubuntu), otherwise says in one sentence how to get it.      usage: setup/system_packages.sh java [chromium] [h2load] [prometheus] [redis]
# [haproxy] [grpc] [go-grpc] [java-grpc]
set -eu

install() { # PROGRAM PACKAGES... (the first that can be had; several of one kind divided by blanks)
    program=$1
    shift
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing $program"
        apt-get update -qq
        for package in "$@"; do
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $package >/dev/null && return
        done
    fi
    echo "$program is missing: install it (Debian/Ubuntu: sudo apt-get install $1) and run make again" >&2
    exit 1
}

java_version() { # 17 of "17.0.15", nothing where there is no java
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

for program in "$@"; do
    case $program in
        java)
            version=$(java_version || true)
            [ "${version:-0}" -ge 17 ] || install "Java 17 or newer" openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless
            ;;
        chromium)
            command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || install Chromium chromium chromium-browser
            ;;
        h2load)
            command -v h2load >/dev/null 2>&1 || install h2load nghttp2-client
            ;;
        prometheus) # with promtool
            command -v prometheus >/dev/null 2>&1 || install Prometheus prometheus
            ;;
        haproxy)
            { command -v haproxy || test -x /usr/sbin/haproxy; } >/dev/null 2>&1 || install HAProxy haproxy
            ;;
        grpc) # what serving/native/native_server.cpp is compiled with
            { command -v "${CXX:-g++}" && echo '#include <grpcpp/grpcpp.h>' | "${CXX:-g++}" -std=c++17 -fsyntax-only -x c++ -; } >/dev/null 2>&1 ||
                install "gRPC of C++" "g++ libgrpc++-dev"
            ;;
        redis) # or Valkey, which answers the same
            command -v redis-server >/dev/null 2>&1 || command -v valkey-server >/dev/null 2>&1 || install Redis redis-server
            ;;
        go-grpc) # what docs/reference/other_languages.md is compiled with
            { command -v go && command -v protoc-gen-go-grpc && test -d /usr/share/gocode/src/google.golang.org/grpc; } >/dev/null 2>&1 ||
                install "Go with gRPC" "golang-go golang-google-grpc-dev golang-github-golang-protobuf-1-5-dev protoc-gen-go-1-5 protoc-gen-go-grpc protobuf-compiler"
            ;;
        java-grpc)
            { command -v javac && command -v grpc_java_plugin && ls /usr/share/java/grpc-stub.jar /usr/share/java/protobuf.jar /usr/share/java/perfmark-api.jar /usr/share/java/netty-all.jar; } >/dev/null 2>&1 ||
                install "gRPC of Java" "libgrpc-java libprotobuf-java libperfmark-java libnetty-java protobuf-compiler protobuf-compiler-grpc-java-plugin openjdk-17-jdk-headless" \
                    "libgrpc-java libprotobuf-java libperfmark-java libnetty-java protobuf-compiler protobuf-compiler-grpc-java-plugin default-jdk-headless"
            ;;
        *)
            echo "unknown program $program" >&2
            exit 2
            ;;
    esac
done
